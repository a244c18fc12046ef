"""llama-server's context, and Ollama's environment."""

from planner.deploy.llamacpp import llamacpp_launch

from .cases import sized

GGUF = {"weight_dtype": "gguf_q4_k_m"}


def value(words, flag):
    return words[words.index(flag) + 1]


def test_each_slot_has_the_planned_context():
    # README of llama-server: -c is shared out over the slots unless they use one context.
    words = llamacpp_launch(sized(engine="llama-server", max_num_seqs=4, **GGUF)).words()
    assert (value(words, "-c"), value(words, "-np")) == ("32768", "4")
    shared = llamacpp_launch(sized(engine="llama-server", **GGUF)).words()
    assert value(shared, "-c") == "8192"
    assert "-np" not in shared


def test_the_file_is_the_planned_scheme_of_a_known_repository():
    words = llamacpp_launch(sized(engine="llama.cpp", **GGUF)).words()
    assert value(words, "-hf") == "unsloth/Llama-3.1-8B-Instruct-GGUF:Q4_K_M"


def test_a_quantised_cache_needs_flash_attention():
    words = llamacpp_launch(sized(engine="llama.cpp", kv_cache_dtype="q8_0", **GGUF)).words()
    assert (value(words, "-fa"), value(words, "-ctk"), value(words, "-ctv")) == ("on", "q8_0", "q8_0")


def test_ollama_is_told_by_its_environment():
    launch = llamacpp_launch(sized(engine="ollama", max_num_seqs=2, kv_cache_dtype="q8_0", **GGUF))
    assert dict(launch.env) == {
        "OLLAMA_CONTEXT_LENGTH": "8192",
        "OLLAMA_NUM_PARALLEL": "2",
        "OLLAMA_KEEP_ALIVE": "-1",
        "OLLAMA_FLASH_ATTENTION": "1",
        "OLLAMA_KV_CACHE_TYPE": "q8_0",
    }
    assert launch.after == (("ollama", "pull", "llama3.1:8b"),)


def test_an_eagle_head_is_a_type_of_speculation():
    head = "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"
    draft = {"num_speculative_tokens": 3, "weight_dtype": "gguf_q4_k_m"}
    words = llamacpp_launch(sized(engine="llama-server", draft_model=head, **draft)).words()
    assert words[words.index("--spec-type") + 1] == "draft-eagle3"
    plain = llamacpp_launch(sized(engine="llama-server", draft_model="meta-llama/Llama-3.2-1B-Instruct", **draft))
    assert "--spec-type" not in plain.words()
