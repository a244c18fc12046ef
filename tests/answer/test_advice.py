"""Each common mistake of the seed article is a warning exactly when the scenario makes it."""

import pytest

from planner.answer.planning import plan, size
from planner.answer.report import memory_rows
from planner.scenario.scenario import Scenario
from planner.units import GIB

BASE = {"num_requests": 400, "seed": 3}


def kinds(**changes):
    return {finding.kind for finding in plan(Scenario(**{**BASE, **changes})).findings}


@pytest.mark.parametrize(
    ("kind", "makes", "avoids"),
    [
        ("one_at_a_time", {"max_num_seqs": 1, "users": 10}, {}),
        (
            "short_prompts",
            {"lengths": "constant", "prompt_mean_tokens": 40.0, "output_mean_tokens": 40.0},
            {"lengths": "constant", "prompt_mean_tokens": 1500.0, "output_mean_tokens": 200.0},
        ),
        ("cache_ignored", {"gpu": "RTX 4090", "max_model_len": 65_536, "users": 10}, {}),
        ("few_requests", {"demand": "daily", "requests_per_day": 2000.0}, {}),
        ("api_cheaper", {"usd_per_gpu_hour": 50.0}, {"users": 1000, "usd_per_gpu_hour": 0.01}),
        ("small_budget", {"max_num_seqs": 256, "max_num_batched_tokens": 128}, {"max_num_seqs": 64}),
        (
            "prefix_not_cached",
            {"shared_prefix_tokens": 400, "enable_prefix_caching": False},
            {"shared_prefix_tokens": 400},
        ),
        (
            "lora_slots",
            {"num_lora_adapters": 50, "max_loras": 1, "num_replicas": 1},
            {"num_lora_adapters": 50, "max_loras": 50},
        ),
        (
            "few_prefixes",
            {"router": "prefix_affinity", "shared_prefix_tokens": 400},
            {"router": "prefix_affinity", "shared_prefix_tokens": 400, "num_prefix_groups": 60},
        ),
        ("without_effect", {"max_loras": 4}, {"max_loras": 4, "num_lora_adapters": 9}),
        (
            "without_effect",
            {"mamba_full_memory_ratio": 0.5},
            {"mamba_full_memory_ratio": 0.5, "model": "Qwen/Qwen3.5-9B", "engine": "sglang", "gpu": "H200 SXM"},
        ),
        ("without_effect", {"media": "none"}, {"media": "none", "model": "Qwen/Qwen2.5-VL-7B-Instruct"}),
        ("without_effect", {"media": "images"}, {"media": "images", "model": "Qwen/Qwen2.5-VL-7B-Instruct"}),
    ],
)
def test_a_mistake_is_a_warning_exactly_when_it_is_made(kind, makes, avoids):
    assert kind in kinds(**makes)
    assert kind not in kinds(**avoids)


def test_the_average_hides_the_tail():
    bursty = kinds(arrivals="bursty", burst_cv=4.0, num_replicas=1, users=900)
    steady = kinds(users=10, lengths="constant")
    assert "average_only" in bursty
    assert "average_only" not in steady


def test_reserving_engines_are_called_out():
    assert "reserved" in kinds(engine="orca")


SMALL = Scenario(num_requests=400)


def test_a_few_requests_are_not_a_few_thousand():
    def told(per_day):
        done = plan(SMALL.replace(demand="daily", requests_per_day=per_day))
        return next(finding.text for finding in done.findings if finding.kind == "few_requests")

    assert told(12.0).startswith("Self-hosting for a few requests a day: 12 requests a day cost")
    assert told(2000.0).startswith("Self-hosting for a few thousand requests a day: 2,000 requests a day cost")


def test_idle_replicas_are_told():
    found = plan(SMALL.replace(arrivals="closed", concurrent_users=1, num_replicas=3)).findings
    text = next(finding.text for finding in found if finding.kind == "idle_replicas")
    assert text == "2 of 3 replicas stay idle: there is 1 user to deal to them."


def test_an_engine_that_is_short_of_memory_under_load_is_told():
    done = size(SMALL.replace(engine="tgi", model="meta-llama/Llama-3.1-70B-Instruct", gpu="H200 SXM"))
    assert done.fits
    text = next(finding.text for finding in done.findings if finding.kind == "runs_short")
    assert f"{-done.memory.free_bytes / GIB:.2f} GiB more than the GPU has" in text
    assert dict(memory_rows(done))["Short of a full step"] == f"{-done.memory.free_bytes / GIB:.2f} GiB"
    assert "runs_short" not in {finding.kind for finding in size(SMALL).findings}
