"""Every input of a plan, declared once with its link name, unit, bounds and help."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from planner.scenario.advanced import ROUTERS as ROUTERS
from planner.scenario.runtime import EngineRuntime
from planner.scenario.settings import MAX_CONFIG_TEXT as MAX_CONFIG_TEXT
from planner.scenario.settings import optional_setting, setting

CUSTOM = "custom"  # model or GPU entered by hand
CONFIG = "config"  # model from a pasted or uploaded config.json
DEMAND_KINDS = ("users", "rate", "daily")
LENGTH_KINDS = ("lognormal", "constant", "normal", "uniform", "exponential", "trace")
OPEN_LOOP_KINDS = ("poisson", "bursty")  # arrivals with a rate of their own, whatever the service does
ARRIVAL_KINDS = (*OPEN_LOOP_KINDS, "once", "closed")
# settings that the engine takes over under their own name where the user says something
TAKEN_OVER = (
    *("gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens", "block_size", "patience_s", "timeout_s"),
    *("max_state_slots", "mamba_full_memory_ratio"),
)
MAX_LORAS = {"sglang": 8}  # adapters of one batch where the user says nothing; vLLM and the others: 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs(EngineRuntime):
    """The inputs as a user gives them, each on its own; `Scenario` checks them together."""

    title: str = setting("", "n", "Name of this plan", group="model", help="Shown in the page title; part of the link.")
    # -- model
    model: str = setting(
        "meta-llama/Llama-3.1-8B-Instruct", "m", "Model", group="model", help="Catalog id, 'config' or 'custom'."
    )
    model_config: str = setting("", "mc", "config.json", group="model", help="Fields of a Hugging Face config.json.")
    num_layers: int = setting(32, "ly", "Layers", group="shape", minimum=1, maximum=1000)
    hidden_size: int = setting(4096, "hs", "Hidden size", group="shape", minimum=8, maximum=200_000)
    num_attention_heads: int = setting(32, "nh", "Attention heads", group="shape", minimum=1, maximum=2048)
    num_kv_heads: int = setting(8, "kh", "KV heads", group="shape", minimum=1, maximum=2048)
    head_dim: int = setting(128, "hd", "Head dimension", group="shape", minimum=1, maximum=8192)
    intermediate_size: int = setting(14336, "is", "Intermediate size", group="shape", minimum=1, maximum=1_000_000)
    vocab_size: int = setting(128_256, "voc", "Vocabulary", group="shape", minimum=2, maximum=10_000_000)
    num_experts: int = setting(0, "ex", "Experts", group="shape", minimum=0, maximum=4096, help="0 = dense.")
    experts_per_token: int = setting(2, "ek", "Experts per token", group="shape", minimum=1, maximum=4096)
    moe_intermediate_size: int = setting(
        1536, "ei", "Expert intermediate size", group="shape", minimum=1, maximum=1_000_000
    )
    weight_dtype: str = setting("auto", "w", "Weights", group="model", help="'auto' = as the checkpoint is published.")
    kv_cache_dtype: str = setting(
        "auto",
        "kv",
        "KV cache",
        group="model",
        help="'auto' = as the checkpoint: 16 bit, or fp8 where it is calibrated for that and the engine follows it.",
    )
    max_model_len: int = setting(
        8192, "ctx", "Context length", unit="tokens", group="model", minimum=16, maximum=100_000_000
    )
    # -- hardware
    gpu: str = setting("H100 SXM", "g", "GPU", group="hardware", help="Catalog name or 'custom'.")
    gpu_memory_gib: float = setting(80.0, "gm", "Memory", unit="GiB", group="gpu", minimum=0.5, maximum=10_000)
    gpu_bandwidth_gb_s: float = setting(
        2000.0, "gb", "Memory bandwidth", unit="GB/s", group="gpu", minimum=1, maximum=1_000_000
    )
    gpu_bf16_tflops: float = setting(
        400.0, "gf", "Dense bf16 rate", unit="TFLOP/s", group="gpu", minimum=0.1, maximum=1_000_000
    )
    gpu_fp8_tflops: float = setting(
        0.0, "g8", "Dense fp8 rate", unit="TFLOP/s", group="gpu", minimum=0, maximum=1_000_000, help="0 = none."
    )
    gpu_link_gb_s: float = setting(
        64.0, "gl", "GPU-to-GPU link, both directions", unit="GB/s", group="gpu", minimum=1, maximum=100_000
    )
    gpus_per_node: int = setting(8, "gn", "GPUs per node", group="gpu", minimum=1, maximum=1024)
    tensor_parallel_size: int = setting(1, "tp", "Tensor parallel", group="hardware", minimum=1, maximum=1024)
    pipeline_parallel_size: int = setting(1, "pp", "Pipeline parallel", group="hardware", minimum=1, maximum=256)
    expert_parallel: bool = setting(False, "ep", "Expert parallel", group="hardware")
    attention_data_parallel_size: int = setting(
        1,
        "adp",
        "Attention data parallel",
        group="hardware",
        minimum=1,
        maximum=1024,
        help="Attention in that many groups that share the experts. GPUs of a replica = tensor × pipeline × this.",
    )
    num_replicas: int | None = optional_setting(
        "r", "Replicas", kind="count", group="hardware", minimum=1, maximum=100_000, help="Empty = as many as needed."
    )
    # -- engine
    engine: str = setting("vllm", "e", "Engine", group="engine")
    gpu_memory_utilization: float | None = optional_setting(
        "gmu", "GPU memory utilization", kind="number", group="engine", minimum=0.05, maximum=1.0
    )
    max_num_seqs: int | None = optional_setting(
        "seqs", "Max sequences", kind="count", group="engine", minimum=1, maximum=100_000
    )
    max_num_batched_tokens: int | None = optional_setting(
        "mbt", "Max batched tokens", kind="count", group="engine", minimum=1, maximum=1_000_000
    )
    enable_prefix_caching: bool = setting(True, "pc", "Prefix caching", group="engine")
    # -- traffic
    demand: str = setting("users", "d", "Traffic given as", group="traffic", choices=DEMAND_KINDS)
    users: int = setting(500, "u", "Users", group="traffic", minimum=1, maximum=100_000_000)
    requests_per_user_hour: float = setting(
        30.0, "uh", "Requests per user and hour", group="traffic", minimum=0.001, maximum=100_000
    )
    rate_rps: float = setting(
        8.0, "rps", "Requests per second", unit="req/s", group="traffic", minimum=1e-6, maximum=1e6
    )
    requests_per_day: float = setting(360_000.0, "rpd", "Requests per day", group="traffic", minimum=0.1, maximum=1e11)
    peak_factor: float = setting(2.0, "pk", "Peak ÷ mean", group="traffic", minimum=1, maximum=100)
    arrivals: str = setting("poisson", "a", "Arrivals", group="traffic", choices=ARRIVAL_KINDS)
    burst_cv: float = setting(
        2.0, "cv", "Burstiness (CV of gaps)", group="traffic", minimum=0.05, maximum=20, help="1 = Poisson."
    )
    concurrent_users: int = setting(
        32,
        "cu",
        "Users in the closed loop",
        group="traffic",
        minimum=1,
        maximum=100_000,
        help="Each waits for its answer.",
    )
    think_time_s: float = setting(0.0, "th", "Think time", unit="s", group="traffic", minimum=0, maximum=100_000)
    lengths: str = setting("trace", "l", "Lengths given as", group="traffic", choices=LENGTH_KINDS)
    length_trace: str = setting("azure23_conv", "lt", "Trace of lengths", group="traffic")
    prompt_mean_tokens: float = setting(
        1024.0, "p", "Prompt, mean", unit="tokens", group="traffic", minimum=1, maximum=10_000_000
    )
    prompt_spread: float = setting(1.0, "ps", "Prompt, spread ÷ mean", group="traffic", minimum=0, maximum=10)
    output_mean_tokens: float = setting(
        256.0, "o", "Output, mean", unit="tokens", group="traffic", minimum=1, maximum=1_000_000
    )
    output_spread: float = setting(1.0, "os", "Output, spread ÷ mean", group="traffic", minimum=0, maximum=10)
    shared_prefix_tokens: int = setting(
        0, "sp", "Shared system prompt", unit="tokens", group="traffic", minimum=0, maximum=10_000_000
    )
    num_prefix_groups: int = setting(
        1,
        "pg",
        "Different system prompts",
        group="traffic",
        minimum=1,
        maximum=100_000,
        help="Of that length, each asked for equally often.",
    )
    output_limit_tokens: int | None = optional_setting(
        "max",
        "Answer limit (max_tokens)",
        kind="count",
        unit="tokens",
        group="traffic",
        minimum=1,
        maximum=10_000_000,
        help="What clients send as max_tokens. Empty = up to the context length.",
    )
    exact_output_limit: bool = setting(
        False,
        "xl",
        "max_tokens = answer length",
        group="traffic",
        help="Each request asks for exactly its own answer's tokens, as benchmark clients do. Engines that reserve the "
        "limit then reserve no more than the answer.",
    )
    max_prompt_tokens: int | None = optional_setting(
        "pmax",
        "Longest prompt",
        kind="count",
        unit="tokens",
        group="traffic",
        minimum=1,
        maximum=10_000_000,
        help="Longer prompts are cut to this by the client. Empty = no limit.",
    )
    # -- targets
    ttft_target_s: float = setting(1.0, "ttft", "TTFT target", unit="s", group="targets", minimum=0.001, maximum=3600)
    tpot_target_s: float = setting(0.05, "tpot", "TPOT target", unit="s", group="targets", minimum=0.0001, maximum=60)
    target_quantile: float = setting(0.95, "q", "Quantile of requests", group="targets", minimum=0.5, maximum=0.999)
    spare_replicas: int = setting(
        0, "sr", "Spare replicas", group="targets", minimum=0, maximum=1000, help="Replicas that may fail at the peak."
    )
    # -- prices
    usd_per_gpu_hour: float | None = optional_setting(
        "usd", "Price per GPU-hour", kind="number", unit="USD", group="prices", minimum=0, maximum=10_000
    )
    api_usd_per_mtok_input: float | None = optional_setting(
        "ai",
        "API price, input",
        kind="number",
        unit="USD per million tokens",
        group="prices",
        minimum=0,
        maximum=10_000,
    )
    api_usd_per_mtok_output: float | None = optional_setting(
        "ao",
        "API price, output",
        kind="number",
        unit="USD per million tokens",
        group="prices",
        minimum=0,
        maximum=10_000,
    )
    hours_per_month: float = setting(
        730.0,
        "hpm",
        "Hours paid per month",
        unit="h",
        group="prices",
        minimum=1,
        maximum=744,
        help="In these the GPUs run and serve; tokens and requests of the month are those of these hours.",
    )
    # -- simulation
    num_requests: int = setting(2000, "nr", "Simulated requests", group="simulation", minimum=1, maximum=2_000_000)
    seed: int = setting(7, "s", "Seed", group="simulation", minimum=0, maximum=2**31 - 1)


def fields_by_name() -> dict[str, dataclasses.Field[Any]]:
    """All fields of the Scenario with their metadata, in the order of the form."""
    return dict(_fields_in_order())


@lru_cache(maxsize=1)
def _fields_in_order() -> tuple[tuple[str, dataclasses.Field[Any]], ...]:
    advanced = {item.name: item for item in dataclasses.fields(EngineRuntime)}
    own = {item.name: item for item in dataclasses.fields(Inputs) if item.name not in advanced}
    place = 1 + max(index for index, item in enumerate(own.values()) if item.metadata["group"] == "engine")
    return (*list(own.items())[:place], *advanced.items(), *list(own.items())[place:])
