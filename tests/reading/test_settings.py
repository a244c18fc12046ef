"""Settings as commands, arguments and configurations state them."""

from planner.reading.settings import column_of, settings_in
from planner.reading.text import lines_of


def values(text: str, engine: str = "vllm") -> dict[str, str]:
    return {item.name: item.value for item in settings_in(lines_of(text), engine)}


def test_a_command_over_several_lines():
    flags = ("--max-model-len 32768", "--enforce-eager --kv-cache-dtype=fp8")
    text = " \\\n  ".join(("docker run x", "vllm serve Qwen/Qwen3-8B", *flags)) + "\nother"
    assert values(text) == {
        "model_tag": "Qwen/Qwen3-8B",
        "max_model_len": "32768",
        "enforce_eager": "True",
        "kv_cache_dtype": "fp8",
    }


def test_a_model_after_a_switch_is_not_the_value_of_the_switch():
    assert values("vllm serve --trust-remote-code /models/Qwen3-8B")["model_tag"] == "/models/Qwen3-8B"


def test_the_command_counts_before_the_configuration_that_the_engine_made_of_it():
    made = "Initializing a V1 LLM engine (v0.9.0) with config: model='m', max_seq_len=4096, max_model_len=4096"
    text = f"vllm serve m --max-model-len 1024\n{made}"
    assert values(text)["max_model_len"] == "1024"


def test_unset_settings_are_left_out():
    text = "server_args=ServerArgs(model_path='m', context_length=None, dtype='auto', tp_size=2)"
    assert values(text, "sglang") == {"model_path": "m", "tp_size": "2"}


def test_a_quote_left_open_does_not_stop_the_reading():
    assert values('vllm serve m --chat-template "half --max-num-seqs 8')["model_tag"] == "m"


def test_short_flags_belong_to_llama_server_alone():
    assert column_of("c", "llama.cpp") == "n_ctx"
    assert column_of("c", "vllm") == ""
    assert column_of("no-such-flag", "vllm") == ""
