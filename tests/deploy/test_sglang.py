"""SGLang's own meaning of sizes."""

import pytest

from planner.deploy.sglang import sglang_launch
from planner.deploy.vllm import vllm_launch

from .cases import sized

DEEPSEEK = {"engine": "sglang", "model": "deepseek-ai/DeepSeek-V3", "gpu": "H200 SXM"}


def value(words, flag):
    return words[words.index(flag) + 1]


@pytest.mark.parametrize(
    ("version", "flags"),
    [("0.5.21", ("--dp-size", "--enable-dp-attention")), ("0.5.22", ("--attn-dp-size",))],
)
def test_tp_size_counts_the_attention_ranks(version, flags):
    # server_args.py: the attention ranks are inside tp_size, and both limits are divided by them.
    changes = {"attention_data_parallel_size": 8, "expert_parallel": True, "max_num_seqs": 32}
    words = sglang_launch(sized(**DEEPSEEK, **changes, engine_version=version)).words()
    assert (value(words, "--tp-size"), value(words, "--ep-size")) == ("8", "8")
    assert value(words, "--max-running-requests") == "256"
    assert set(flags) <= set(words)


@pytest.mark.parametrize(
    ("version", "flag"), [("0.5.13", "--disable-cuda-graph"), ("0.5.14", "--cuda-graph-backend-decode")]
)
def test_graphs_are_turned_off_by_the_releases_own_flag(version, flag):
    assert flag in sglang_launch(sized(engine="sglang", enforce_eager=True, engine_version=version)).words()


@pytest.mark.parametrize(("engine", "launch"), [("vllm", vllm_launch), ("sglang", sglang_launch)])
def test_awqs_own_kernels_are_asked_for_by_flag(engine, launch):
    words = launch(sized(engine=engine, model="Qwen/Qwen3-8B", weight_dtype="awq_int4", plain_awq=True)).words()
    assert value(words, "--quantization") == "awq"
    assert "--quantization" not in launch(sized(engine=engine, model="Qwen/Qwen3-8B", weight_dtype="awq_int4")).words()
    other = launch(sized(engine=engine, model="Qwen/Qwen3-8B", plain_awq=True))
    assert "--quantization" not in other.words()
    assert "AWQ without Marlin: the planned weights are not in AWQ." in other.unmet


@pytest.mark.parametrize(
    ("engine", "launch", "flag"),
    [("vllm", vllm_launch, "--mm-encoder-tp-mode"), ("sglang", sglang_launch, "--mm-enable-dp-encoder")],
)
def test_a_whole_vision_tower_is_asked_for_by_flag(engine, launch, flag):
    model = {"engine": engine, "model": "Qwen/Qwen2.5-VL-7B-Instruct", "tensor_parallel_size": 2}
    assert flag in launch(sized(**model, encoder_data_parallel=True)).words()
    assert flag not in launch(sized(**model)).words()
    assert flag not in launch(sized(**model, encoder_data_parallel=True, media="none")).words()


def test_offloaded_cache_is_given_in_gb_for_each_rank():
    # 40 GiB over 4 ranks are 10.7 GB each.
    words = sglang_launch(sized(engine="sglang", tensor_parallel_size=4, kv_offload_gib=40.0)).words()
    assert value(words, "--hicache-size") == "11"
    assert "--enable-hierarchical-cache" in words


def test_mtp_layers_draft_in_a_chain():
    words = sglang_launch(sized(**DEEPSEEK, tensor_parallel_size=8, num_speculative_tokens=2)).words()
    assert value(words, "--speculative-algorithm") == "NEXTN"
    assert (value(words, "--speculative-num-steps"), value(words, "--speculative-num-draft-tokens")) == ("2", "3")


@pytest.mark.parametrize(
    ("draft", "algorithm"),
    [
        ("yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "EAGLE3"),
        ("meta-llama/Llama-3.2-1B-Instruct", "STANDALONE"),
    ],
)
def test_the_algorithm_of_a_draft_model(draft, algorithm):
    words = sglang_launch(sized(engine="sglang", num_speculative_tokens=3, draft_model=draft)).words()
    assert value(words, "--speculative-algorithm") == algorithm
    assert value(words, "--speculative-draft-model-path") == draft
