"""TensorRT-LLM's flags and its YAML file."""

import yaml

from planner.deploy.trtllm import EXTRA_FILE, trtllm_launch

from .cases import sized


def extra(**changes):
    launch = trtllm_launch(sized(engine="tensorrt-llm", **changes))
    return yaml.safe_load(dict(launch.files)[EXTRA_FILE]), launch


def test_a_plain_plan_needs_no_file():
    launch = trtllm_launch(sized(engine="tensorrt-llm"))
    assert not launch.files
    assert launch.words()[:4] == ("trtllm-serve", "meta-llama/Llama-3.1-8B-Instruct", "--max_seq_len", "8192")


def test_the_cache_of_the_file_keeps_the_share_beside_it():
    # A kv_cache_config in the file replaces the one that the flags made.
    body, launch = extra(kv_cache_dtype="fp8", gpu_memory_utilization=0.8, enable_prefix_caching=False)
    assert body == {"kv_cache_config": {"dtype": "fp8", "enable_block_reuse": False, "free_gpu_memory_fraction": 0.8}}
    assert "--kv_cache_free_gpu_memory_fraction" not in launch.words()
    assert launch.words()[-1] == EXTRA_FILE


def test_attention_data_parallel_is_over_all_ranks_or_none():
    changes = {"model": "deepseek-ai/DeepSeek-V3", "gpu": "B200", "expert_parallel": True}
    body, launch = extra(**changes, attention_data_parallel_size=8)
    assert body == {"enable_attention_dp": True}
    assert not launch.unmet
    _, mixed = extra(**changes, attention_data_parallel_size=4, tensor_parallel_size=2)
    assert any("all ranks or over none" in text for text in mixed.unmet)


def test_graphs_off_is_an_empty_config():
    assert extra(enforce_eager=True)[0] == {"cuda_graph_config": None}


def test_kernels_of_experts_are_named_in_the_file():
    # TensorRT-LLM llm_args.py, MoeConfig.backend: CUTLASS, TRTLLM, TRITON, ...
    body, launch = extra(moe_runner_backend="triton")
    assert body == {"moe_config": {"backend": "TRITON"}}
    assert not launch.unmet
