"""What an expert would choose where it follows from arithmetic.

The fewest GPUs of a kind that hold the weights; the GPUs whose operations the traffic takes; the time in which a GPU
reads the weights once.
"""

import math

import pytest

from planner.answer.planning import plan
from planner.answer.search.bounds import by_capacity, by_memory
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


STEADY = {
    "lengths": "constant",
    "prompt_mean_tokens": 1000.0,
    "output_mean_tokens": 200.0,
    "ttft_target_s": None,
    "tpot_target_s": None,
    "shared_prefix_tokens": 0,
}
SPREAD = {"tensor_parallel_size": 1, "attention_data_parallel_size": 8, "expert_parallel": True}

# Model, GPU, split, weights, req/s, 1e9 parameters that a token multiplies (embedding and head left out), data sheet's
# TFLOP/s in that format, most times the GPUs that the operations alone take: dense models reach two fifths of the data
# sheet; cards with slow memory, and sparse experts, of which a token multiplies few and a step reads all, a tenth.
FLEETS = (
    ("meta-llama/Llama-3.1-8B-Instruct", "H100 SXM", {}, "auto", 2_000, 6.98, 989, 3),
    ("meta-llama/Llama-3.1-8B-Instruct", "L4", {}, "fp8", 200, 6.98, 242, 8),
    ("meta-llama/Llama-3.3-70B-Instruct", "H100 SXM", {"tensor_parallel_size": 4}, "auto", 300, 68.5, 989, 3),
    ("meta-llama/Llama-3.1-405B-Instruct", "H200 SXM", {"tensor_parallel_size": 8}, "fp8", 500, 401.6, 1978, 3),
    ("deepseek-ai/DeepSeek-V3", "H200 SXM", SPREAD, "auto", 13_000, 36.6, 1978, 20),  # some 5,000 GPUs
    ("moonshotai/Kimi-K2-Instruct", "B200", SPREAD, "auto", 2_000, 31.0, 4500, 20),
)


@pytest.mark.parametrize(("model", "gpu", "split", "weights", "rate", "billions", "tflops", "most"), FLEETS)
def test_a_fleet_is_what_its_operations_take_times_a_usual_share(
    model, gpu, split, weights, rate, billions, tflops, most
):
    # two operations for each parameter and each of the 1,199 tokens that a request computes
    floor = rate * 2 * billions * 1e9 * 1199 / (tflops * 1e12)
    fleet = STEADY | {"demand": "rate", "rate_rps": float(rate), "num_requests": 200}
    done = plan(Scenario(model=model, gpu=gpu, weight_dtype=weights, **split, **fleet), most_requests=2000)
    assert floor <= done.num_gpus <= most * floor


# Model, GPU, GPUs, weights, GB that a token reads (the embedding is looked up), GB/s of the data sheet, most times it
READS = (
    ("Qwen/Qwen3-0.6B", "RTX 3060", 1, "auto", 1.2, 360, 2),
    ("meta-llama/Llama-3.1-8B-Instruct", "L4", 1, "auto", 15.0, 300, 1.5),
    ("meta-llama/Llama-3.1-8B-Instruct", "RTX 4090", 1, "auto", 15.0, 1008, 1.5),
    ("meta-llama/Llama-3.3-70B-Instruct", "H100 SXM", 2, "auto", 139.0, 3350, 1.5),
    ("meta-llama/Llama-3.3-70B-Instruct", "MI300X", 1, "auto", 139.0, 5300, 2),
    ("Qwen/Qwen3-32B", "L40S", 1, "awq_int4", 18.0, 864, 1.5),
)


@pytest.mark.parametrize(("model", "gpu", "gpus", "weights", "gigabytes", "bandwidth", "most"), READS)
def test_one_user_waits_for_the_weights_to_be_read(model, gpu, gpus, weights, gigabytes, bandwidth, most):
    floor_s = gigabytes / (gpus * bandwidth)
    one = STEADY | {"arrivals": "closed", "concurrent_users": 1, "num_replicas": 1, "num_requests": 20}
    split = {"tensor_parallel_size": gpus, "max_model_len": 4096}
    done = plan(Scenario(model=model, gpu=gpu, weight_dtype=weights, **split, **one), most_requests=200)
    assert floor_s <= done.metrics.tpot_s.p50 <= most * floor_s


def test_deepseek_at_80_requests_a_second_takes_40_h200_with_attention_data_parallelism():
    # Held to a TTFT of 2 s, eight tensor parallel GPUs finish 11.9 req/s: seven replicas. Eight attention ranks with
    # expert parallelism finish 19.5: 80 ÷ (0.97 × 19.5) = 4.2, five replicas. No search may drop that bound.
    asked = Scenario(
        model="deepseek-ai/DeepSeek-V3",
        gpu="H200 SXM",
        demand="rate",
        rate_rps=80.0,
        ttft_target_s=2.0,
        tpot_target_s=None,
        num_requests=300,
    )
    done = plan(asked.replace(**SPREAD), with_policies=False)
    assert (done.num_gpus, done.slo_met) == (40, True)
    assert plan(asked.replace(tensor_parallel_size=8), with_policies=False).num_gpus >= 56
    item = next(
        item
        for item in deployments(asked, choices(asked, ("H200 SXM",))[0], ("auto",))
        if SPREAD.items() <= item.changes.items() and item.changes["kv_cache_dtype"] == "auto"
    )
    (first,) = by_memory(asked, [item.changes], most_requests_of_a_plan)
    (bound,) = by_capacity(asked, [(first, math.inf)], most_requests_of_a_plan)
    assert (bound.out, bound.replicas) == ("", 5)


# GPU, GiB, GB/s of the data sheet, req/s, most times the fewest. Prompts of 8,192 tokens and answers of 512: the KV
# cache of few of them fits beside 15 GiB of weights, at 131,072 bytes a token.
CACHES = (("L4", 22.5, 300, 1.0, 3), ("RTX 4090", 24.0, 1008, 3.0, 3))


@pytest.mark.parametrize(("gpu", "gib", "bandwidth", "rate", "most"), CACHES)
def test_long_prompts_take_the_gpus_whose_memory_holds_them_while_they_are_answered(gpu, gib, bandwidth, rate, most):
    together = (0.9 * gib - 15.0) * 2**30 / 131_072 / (8192 + 512)  # sequences that one GPU holds at most
    least_s = 512 * 15.0 / bandwidth  # each step reads the weights
    floor = rate * least_s / together  # Little's law
    long = STEADY | {"prompt_mean_tokens": 8192.0, "output_mean_tokens": 512.0, "max_model_len": 16_384}
    traffic = {"demand": "rate", "rate_rps": rate, "num_requests": 200}
    done = plan(Scenario(gpu=gpu, **long, **traffic), most_requests=2000)
    assert floor <= done.num_gpus <= most * floor
    computed = rate * 2 * 6.98e9 * 8703 / (done.gpu.bf16_tflops * 1e12)
    assert done.num_gpus > 1.5 * computed  # operations alone would buy too few


# Model, GPU, GPUs of a replica, req/s, TPOT target, GB of weights that a step reads, bytes of KV cache a token, GB/s
# and TFLOP/s of the data sheet, 1e9 parameters that a token multiplies, most times the fewest.
ANSWERS = (
    ("meta-llama/Llama-3.1-8B-Instruct", "H100 SXM", 1, 100, 0.020, 15.0, 131_072, 3350, 989, 6.98, 2),
    ("meta-llama/Llama-3.1-8B-Instruct", "L40S", 1, 20, 0.050, 15.0, 131_072, 864, 362, 6.98, 2.5),
    ("Qwen/Qwen3-32B", "H100 SXM", 2, 40, 0.030, 64.0, 262_144, 3350, 989, 31.2, 2.5),
    ("meta-llama/Llama-3.3-70B-Instruct", "H200 SXM", 4, 40, 0.030, 139.0, 327_680, 4800, 989, 68.5, 3),
)


@pytest.mark.parametrize(
    ("model", "gpu", "width", "rate", "tpot_s", "read", "kv", "bandwidth", "tflops", "billions", "most"), ANSWERS
)
def test_long_answers_take_the_gpus_that_read_weights_and_caches_within_the_target(
    model, gpu, width, rate, tpot_s, read, kv, bandwidth, tflops, billions, most
):
    # 2,000 tokens in, 1,000 out. At r req/s a replica has r · 1,000 · TPOT sequences of 2,500 tokens on average. It
    # computes prompts for a share r · p of the time, and in the rest a step reads the weights and these caches:
    # W + r · 1,000 · TPOT · K ≤ TPOT · (1 - r · p), which bounds r.
    weights_s = read * 1e9 / (width * bandwidth * 1e9)
    cache_s = 2500 * kv / (width * bandwidth * 1e9)
    prompt_s = 2000 * 2 * billions * 1e9 / (width * tflops * 1e12)
    each = (tpot_s - weights_s) / (tpot_s * (1000 * cache_s + prompt_s))
    answers = STEADY | {"prompt_mean_tokens": 2000.0, "output_mean_tokens": 1000.0, "tpot_target_s": tpot_s}
    asked = Scenario(
        model=model,
        gpu=gpu,
        tensor_parallel_size=width,
        demand="rate",
        rate_rps=float(rate),
        num_requests=200,
        **answers,
    )
    done = plan(asked, most_requests=4000, with_policies=False)
    assert done.slo_met
    assert rate / each * width <= done.num_gpus <= most * rate / each * width


# Model, GPU, weights, req/s, 1e9 parameters that a token multiplies, data sheet's TFLOP/s, most times the fewest.
PROMPTS = (
    ("meta-llama/Llama-3.1-8B-Instruct", "H100 SXM", 200, 6.98, 989, 2),
    ("meta-llama/Llama-3.1-8B-Instruct", "A100 SXM 80GB", 50, 6.98, 312, 2),
)


@pytest.mark.parametrize(("model", "gpu", "rate", "billions", "tflops", "most"), PROMPTS)
def test_prompts_almost_without_answers_take_the_gpus_that_multiply_them(model, gpu, rate, billions, tflops, most):
    floor = rate * 2 * billions * 1e9 * 4001 / (tflops * 1e12)
    prompts = STEADY | {"prompt_mean_tokens": 4000.0, "output_mean_tokens": 2.0}
    asked = Scenario(model=model, gpu=gpu, demand="rate", rate_rps=float(rate), num_requests=200, **prompts)
    assert floor <= plan(asked, most_requests=4000, with_policies=False).num_gpus <= most * floor
