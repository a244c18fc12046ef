"""What an expert would choose where it follows from arithmetic: the fewest GPUs of a kind that hold the weights."""

import pytest

from planner.answer.search.bounds import by_memory
from planner.answer.search.recommend import most_requests_of_a_plan
from planner.answer.search.space import choices, deployments
from planner.scenario.scenario import Scenario

CHAT = {"lengths": "trace", "length_trace": "azure23_conv"}
CODE = {"lengths": "trace", "length_trace": "azure23_code"}
RAG = {"lengths": "lognormal", "prompt_mean_tokens": 4000.0, "output_mean_tokens": 300.0, "shared_prefix_tokens": 1000}
AGENTS = {"lengths": "lognormal", "prompt_mean_tokens": 12_000.0, "output_mean_tokens": 500.0, "max_model_len": 32_768}
BATCH = {"arrivals": "once", "lengths": "constant", "prompt_mean_tokens": 1024.0, "output_mean_tokens": 256.0}

# Model, traffic, GPU, weights, fewest GPUs of a replica, why: GB of weights in GiB against nine tenths of the memory.
CHOICES = (
    ("Qwen/Qwen3-0.6B", CHAT, "RTX 3060", "auto", 1, "1.1 GiB on 12"),
    ("meta-llama/Llama-3.1-8B-Instruct", CHAT, "RTX 4090", "auto", 1, "15 GiB on 24"),
    ("meta-llama/Llama-3.1-8B-Instruct", RAG, "T4", "auto", 2, "15 GiB do not fit on 15"),
    ("meta-llama/Llama-3.1-8B-Instruct", BATCH, "T4", "awq_int4", 1, "5.3 GiB on 15"),
    ("meta-llama/Llama-3.1-8B-Instruct", CODE, "L4", "auto", 1, "15 GiB on 22"),
    ("Qwen/Qwen3-32B", CHAT, "H100 SXM", "auto", 1, "61 GiB on 80"),
    ("Qwen/Qwen3-32B", AGENTS, "L40S", "auto", 2, "61 GiB on 45"),
    ("Qwen/Qwen3-32B", CHAT, "L40S", "awq_int4", 1, "18 GiB on 45"),
    (
        "meta-llama/Llama-3.3-70B-Instruct",
        CHAT,
        "H100 SXM",
        "fp8",
        2,
        "68 of 72 GiB: no room for 8k tokens",
    ),
    ("meta-llama/Llama-3.3-70B-Instruct", AGENTS, "H100 SXM", "auto", 4, "131 GiB leave 12 of 143 for 32k tokens"),
    ("meta-llama/Llama-3.3-70B-Instruct", RAG, "H200 SXM", "auto", 2, "131 GiB do not fit on 126"),
    ("meta-llama/Llama-3.3-70B-Instruct", RAG, "MI300X", "auto", 1, "131 GiB on 192"),
    ("openai/gpt-oss-120b", CHAT, "H100 SXM", "auto", 1, "61 GiB in MXFP4"),
    ("meta-llama/Llama-3.1-405B-Instruct", CHAT, "H100 SXM", "auto", 16, "756 GiB: two servers of 640"),
    ("meta-llama/Llama-3.1-405B-Instruct", CHAT, "H200 SXM", "auto", 8, "756 GiB on 1,010"),
    ("meta-llama/Llama-3.1-405B-Instruct", BATCH, "MI300X", "auto", 8, "756 GiB, above four of 173"),
    ("deepseek-ai/DeepSeek-V3", CHAT, "H200 SXM", "auto", 8, "640 GiB on 1,010; four hold 505"),
    ("deepseek-ai/DeepSeek-V3", CHAT, "H100 SXM", "auto", 16, "640 GiB: two servers of 640"),
    ("deepseek-ai/DeepSeek-V3", AGENTS, "B200", "nvfp4", 4, "about 390 GiB on 645"),
    ("moonshotai/Kimi-K2-Instruct", AGENTS, "B200", "auto", 8, "960 GiB on 1,289; H200 needs 16"),
    ("moonshotai/Kimi-K2-Instruct", CHAT, "H200 SXM", "auto", 16, "960 GiB leave too little of 1,010"),
)


@pytest.mark.parametrize(("model", "traffic", "gpu", "weights", "fewest", "why"), CHOICES)
def test_the_narrowest_replica_that_starts_is_what_the_memory_says(model, traffic, gpu, weights, fewest, why):
    scenario = Scenario(model=model, gpu=gpu, num_requests=100, **traffic)
    found = [
        item
        for item in deployments(scenario, choices(scenario, (gpu,))[0], (weights,))
        if item.changes["kv_cache_dtype"] == "auto"
    ]
    bounds = by_memory(scenario, [item.changes for item in found], most_requests_of_a_plan)
    starts = [item.gpus_per_replica for item, bound in zip(found, bounds, strict=True) if not bound.out]
    assert min(starts) == fewest, why
