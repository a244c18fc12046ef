"""Which checkpoint a plan loads."""

from planner.deploy.weights import Weights, gguf_file, missing_checkpoint, ollama_name, planned_weights

from .cases import sized


def test_the_published_checkpoint_comes_first():
    # On the hub: Qwen/Qwen3-8B-FP8 and RedHatAI's or the maker's AWQ.
    assert planned_weights(sized(model="Qwen/Qwen3-8B", weight_dtype="fp8_block")).id == "Qwen/Qwen3-8B-FP8"
    assert planned_weights(sized(model="Qwen/Qwen3-8B", weight_dtype="awq_int4")).id == "Qwen/Qwen3-8B-AWQ"


def test_a_checkpoint_in_its_own_format_stays_itself():
    given = "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic"
    assert planned_weights(sized(model=given, tensor_parallel_size=2)) == Weights(id=given)


def test_sixteen_bits_of_a_quantised_checkpoint_are_the_model_that_it_was_made_of():
    weights = planned_weights(sized(model="Qwen/Qwen3-8B-FP8", weight_dtype="bf16"))
    assert (weights.id, weights.dtype) == ("Qwen/Qwen3-8B", "bfloat16")


def test_a_model_entered_by_hand_is_a_placeholder():
    assert planned_weights(sized(model="custom")).id == "YOUR_MODEL"


def test_what_is_missing_is_said():
    assert "NVFP4" in missing_checkpoint(Weights(id="a/b", convert="nvfp4"))


def test_ollama_takes_its_own_tag_else_a_repository_of_files():
    plan = sized(engine="ollama", weight_dtype="gguf_q4_k_m")
    assert ollama_name(plan) == ("llama3.1:8b", "")
    wider = sized(engine="ollama", weight_dtype="gguf_q6_k")
    assert ollama_name(wider)[0] == "hf.co/unsloth/Llama-3.1-8B-Instruct-GGUF:Q6_K"
    assert gguf_file(wider)[:2] == ("unsloth/Llama-3.1-8B-Instruct-GGUF", "Q6_K")
