"""What the form shows of the Scenario's fields: groups, folds, choices, steps, and when each matters. No streamlit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.catalog import draft_head_names, engine_names, gpu_names, length_set_names, model_names
from planner.model import kv_dtype_names, weight_dtype_names
from planner.scenario import CONFIG, CUSTOM, OPEN_LOOP_KINDS, TARGETS, fields_by_name

LARGEST = 2**53 - 1  # the largest integer that a browser keeps exactly
GROUPS = {
    "model": "Model",
    "hardware": "Hardware",
    "engine": "Engine",
    "advanced": "Advanced engine settings",
    "traffic": "Traffic",
    "targets": "Targets",
    "prices": "Prices",
    "time": "Day and months",
    "simulation": "Simulation",
}
OPTIONS: dict[str, Callable[[], tuple[str, ...]]] = {
    "model": lambda: (*model_names(), CUSTOM, CONFIG),
    "gpu": lambda: (*gpu_names(), CUSTOM),
    "engine": engine_names,
    "weight_dtype": weight_dtype_names,
    "kv_cache_dtype": kv_dtype_names,
    "length_trace": length_set_names,
    "draft_model": lambda: ("", *draft_head_names(), *model_names()),
}
STEPS = {
    "ttft_target_s": 0.1,
    "tpot_target_s": 0.005,
    "itl_target_s": 0.05,
    "e2e_target_s": 1.0,
    "safety_margin": 0.05,
    "usd_per_gpu_hour": 0.1,
    "target_quantile": 0.01,
    "gpu_memory_utilization": 0.01,
    "speculative_acceptance": 0.05,
    "prompt_spread": 0.1,
    "output_spread": 0.1,
    "burst_cv": 0.5,
    "peak_factor": 0.5,
    "api_usd_per_mtok_input": 0.05,
    "api_usd_per_mtok_output": 0.05,
    "max_model_len": 1024,
    "users": 100,
    "num_requests": 500,
    "max_num_batched_tokens": 1024,
    "prompt_mean_tokens": 128.0,
    "output_mean_tokens": 32.0,
    "shared_prefix_tokens": 128,
    "hours_per_month": 10.0,
    "api_usd_per_mtok_cached_input": 0.05,
    "api_cached_share": 0.05,
    "gpu_purchase_usd": 1000.0,
    "depreciation_years": 0.5,
    "resale_share": 0.05,
    "power_usd_per_kwh": 0.01,
    "pue": 0.05,
    "server_power_factor": 0.1,
    "people_usd_per_month": 1000.0,
    "startup_s": 10.0,
    "disk_gb_s": 0.5,
    "cooldown_s": 60.0,
    "growth_per_month": 0.01,
    "price_trend_per_year": 0.05,
    "hidden_size": 128,
    "intermediate_size": 256,
    "vocab_size": 1000,
    "moe_intermediate_size": 128,
    "output_limit_tokens": 128,
    "long_prefill_token_threshold": 512,
    "block_size": 16,
    "kv_offload_gib": 16.0,
    "max_lora_rank": 8,
    "patience_s": 1.0,
    "timeout_s": 10.0,
    "lora_popularity": 0.1,
}
OPEN_AT_FIRST = ("model", "hardware", "traffic", "targets")
#: what few change, behind a fold in its group
MORE: dict[str, tuple[str, tuple[str, ...]]] = {
    "hardware": (
        "More: parallelism, prefill and decode",
        (
            *("pipeline_parallel_size", "expert_parallel", "attention_data_parallel_size", "deployment"),
            *("prefill_replicas", "decode_replicas", "kv_transfer_gb_s"),
        ),
    ),
    "traffic": (
        "More: shared prompts, limits",
        (
            *("shared_prefix_tokens", "num_prefix_groups"),
            *("output_limit_tokens", "exact_output_limit", "max_prompt_tokens"),
        ),
    ),
    "targets": (
        "More: other targets, margin, spares",
        ("itl_target_s", "e2e_target_s", "target_quantile", "safety_margin", "spare_replicas"),
    ),
}
SPREAD_LENGTHS = ("lognormal", "normal", "uniform")
#: what only prefill and decode on separate replicas need
OF_POOLS = ("prefill_replicas", "decode_replicas", "kv_transfer_gb_s")
#: what only a rate that changes from hour to hour needs
OF_THE_DAY = ("day_shape", "startup_s", "disk_gb_s", "autoscale_target", "cooldown_s")
#: what only owned GPUs cost
OWNED = (
    *("gpu_purchase_usd", "depreciation_years", "resale_share", "power_usd_per_kwh", "pue", "server_power_factor"),
    "people_usd_per_month",
)
PLACEHOLDERS = {  # what an empty field means, by field or group
    "engine": "engine default",
    "advanced": "engine default",
    "prices": "list price",
    "gpu_purchase_usd": "not counted",
    "startup_s": "estimate",
    "prefill_replicas": "as needed",
    "decode_replicas": "as needed",
    "kv_transfer_gb_s": "50 at most",
    "autoscale_target": "80 % of capacity",
    "api_cached_share": "as cached here",
    "patience_s": "never leaves",
    "timeout_s": "never leaves",
    "output_limit_tokens": "context length",
    "max_prompt_tokens": "no limit",
    "gpu_total_gib": "catalog value",
    "engine_version": "newest",
    "targets": "no target",
    "most_gpus": "no limit",
}


def relevant(name: str, s: dict[str, Any]) -> bool:
    """Whether a field matters, given the other widgets' values."""
    rules: dict[str, bool] = {
        "model_config": False,  # has its own editor
        "day_hours": False,  # has its own editor on the Fleet & time page
        "title": False,  # in the Share popover, beside the link
        "question": False,  # above the answer
        "spare_replicas": s["question"] == "need" and s["num_replicas"] is None,
        "safety_margin": any(s[field] is not None for field in TARGETS),
        "users": s["demand"] == "users",
        "requests_per_user_hour": s["demand"] == "users",
        "rate_rps": s["demand"] == "rate",
        "requests_per_day": s["demand"] == "daily",
        "demand": s["arrivals"] in OPEN_LOOP_KINDS,
        "peak_factor": s["arrivals"] in OPEN_LOOP_KINDS,
        "burst_cv": s["arrivals"] == "bursty",
        "concurrent_users": s["arrivals"] == "closed",
        "think_time_s": s["arrivals"] == "closed",
        "length_trace": s["lengths"] == "trace",
        "prompt_quantiles": s["lengths"] == "quantiles",
        "output_quantiles": s["lengths"] == "quantiles",
        "prompt_mean_tokens": s["lengths"] not in ("trace", "quantiles"),
        "output_mean_tokens": s["lengths"] not in ("trace", "quantiles"),
        "prompt_spread": s["lengths"] in SPREAD_LENGTHS,
        "output_spread": s["lengths"] in SPREAD_LENGTHS,
        "speculative_acceptance": bool(s["num_speculative_tokens"]),
        "draft_model": bool(s["num_speculative_tokens"]),
        "num_prefix_groups": bool(s["shared_prefix_tokens"]),
        "lora_popularity": bool(s["num_lora_adapters"]),
        "max_loras": bool(s["num_lora_adapters"]),
        "max_lora_rank": bool(s["num_lora_adapters"]),
        "router": s["arrivals"] in OPEN_LOOP_KINDS,
        "max_state_slots": s["engine"].startswith("sglang") or s["max_state_slots"] is not None,
        "mamba_full_memory_ratio": s["engine"].startswith("sglang") or s["mamba_full_memory_ratio"] is not None,
        "max_total_tokens": s["engine"].startswith(("sglang", "tensorrt")) or s["max_total_tokens"] is not None,
        "images_per_prompt": s["engine"].startswith("vllm") or s["images_per_prompt"] is not None,
        "encoder_data_parallel": s["engine"].startswith(("vllm", "sglang")) or s["encoder_data_parallel"],
        "engine_core": s["engine"].startswith("vllm") or s["engine_core"] != "auto",
        "decode_context_parallel_size": s["engine"].startswith("vllm") or s["decode_context_parallel_size"] > 1,
        "behind_dynamo": s["engine"].startswith(("vllm", "sglang", "tensorrt")) or s["behind_dynamo"],
        "plain_awq": s["engine"].startswith(("vllm", "sglang")) or s["plain_awq"],
        "moe_runner_backend": s["engine"].startswith(("vllm", "sglang")) or s["moe_runner_backend"] != "auto",
        "receive_interval_steps": s["engine"].startswith("sglang") or s["receive_interval_steps"] > 1,
        "kv_unified": s["engine"].startswith("llama") or s["kv_unified"] != "auto",
        "gpu_total_gib": s["gpu"] != CUSTOM,
        **dict.fromkeys(OF_POOLS, s["deployment"] == "disaggregated"),
        "num_replicas": (s["question"] != "need" and s["deployment"] != "disaggregated")
        or s["num_replicas"] is not None,
        **dict.fromkeys(OF_THE_DAY, s["arrivals"] in OPEN_LOOP_KINDS),
        **dict.fromkeys(OWNED, s["price_kind"] == "owned"),
        "experts_per_token": bool(s["num_experts"]),
        "moe_intermediate_size": bool(s["num_experts"]),
    }
    for demand_field in ("users", "requests_per_user_hour", "rate_rps", "requests_per_day"):
        rules[demand_field] = rules[demand_field] and rules["demand"]
    if s["question"] == "take":
        rules |= dict.fromkeys(("users", "rate_rps", "requests_per_day", "concurrent_users"), False)  # it asks for them
    return rules.get(name, True)


def group_of(name: str) -> str:
    """The group in whose fold a field stands; empty where the name is of no field."""
    fields = fields_by_name()
    if name not in fields:
        return ""
    group = str(fields[name].metadata["group"])
    return {"shape": "model", "gpu": "hardware"}.get(group, group)


HEADINGS = {  # subheadings inside a group, above the named field
    "chunked_prefill": "Prefill and KV cache",
    "num_speculative_tokens": "Speculative decoding",
    "num_lora_adapters": "LoRA",
    "patience_s": "Clients and replicas",
    "usd_per_gpu_hour": "GPUs",
    "api_usd_per_mtok_input": "Hosted API",
    "gpu_purchase_usd": "Owned GPUs and power",
    "day_shape": "24 hours",
    "growth_per_month": "24 months",
}
