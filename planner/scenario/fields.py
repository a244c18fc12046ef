"""Every input of a plan, each declared once with its link name, unit, bounds and help."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from planner.scenario.advanced import ROUTERS as ROUTERS
from planner.scenario.measured import Measurements
from planner.scenario.runtime import EngineRuntime
from planner.scenario.settings import MAX_CONFIG_TEXT as MAX_CONFIG_TEXT
from planner.scenario.settings import optional_setting, setting

CUSTOM = "custom"  # model or GPU entered by hand
CONFIG = "config"  # model from a pasted or uploaded config.json
GPU_VENDORS = ("any", "NVIDIA", "AMD", "Google", "Intel", "Apple", "Huawei")
PRICE_KINDS = ("ondemand", "reserved", "spot", "owned")
QUESTIONS = ("need", "take", "will")
DEMAND_KINDS = ("users", "rate", "daily")
LENGTH_KINDS = ("lognormal", "constant", "normal", "uniform", "exponential", "trace", "quantiles")
OPEN_LOOP_KINDS = ("poisson", "bursty")  # arrivals at a given rate, whatever the service does
ARRIVAL_KINDS = (*OPEN_LOOP_KINDS, "once", "closed")
# settings passed to the engine under the same name where the user sets them
TAKEN_OVER = (
    *("gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens", "block_size", "patience_s", "timeout_s"),
    *("max_state_slots", "mamba_full_memory_ratio", "max_total_tokens", "max_cudagraph_capture_size"),
    *("images_per_prompt", "host_memory_gib"),
)
MAX_LORAS = {"sglang": 8}  # engine defaults; vLLM and the others: 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs(Measurements):
    """The inputs as the user gives them, each valid on its own; `Scenario` checks them together."""

    question: str = setting(
        "need",
        "ask",
        "Question",
        group="question",
        choices=QUESTIONS,
        help="need = the fewest GPUs for this traffic; take = the most traffic for these GPUs; will = whether these "
        "GPUs hold this traffic. A number of replicas turns need into will; take and will without one have 1 replica.",
    )
    title: str = setting("", "n", "Name of this plan", group="model", help="Shown above every page; part of the link.")
    # -- model
    model: str = setting(
        "meta-llama/Llama-3.1-8B-Instruct",
        "m",
        "Model",
        group="model",
        help="A model of the catalog, a config.json, or a shape entered by hand (vLLM --model, SGLang --model-path).",
    )
    model_config: str = setting(
        "",
        "mc",
        "config.json",
        group="model",
        help="The text of a Hugging Face config.json; only the fields that matter are kept.",
    )
    num_layers: int = setting(
        32,
        "ly",
        "Layers",
        group="shape",
        minimum=1,
        maximum=1000,
        help="Transformer layers (num_hidden_layers in config.json).",
    )
    hidden_size: int = setting(
        4096,
        "hs",
        "Hidden size",
        group="shape",
        minimum=8,
        maximum=200_000,
        help="Width of the residual stream (hidden_size in config.json).",
    )
    num_attention_heads: int = setting(
        32,
        "nh",
        "Attention heads",
        group="shape",
        minimum=1,
        maximum=2048,
        help="Query heads of each layer (num_attention_heads in config.json).",
    )
    num_kv_heads: int = setting(
        8,
        "kh",
        "KV heads",
        group="shape",
        minimum=1,
        maximum=2048,
        help="Key and value heads of each layer; fewer than attention heads means grouped-query attention "
        "(num_key_value_heads in config.json).",
    )
    head_dim: int = setting(
        128,
        "hd",
        "Head dimension",
        group="shape",
        minimum=1,
        maximum=8192,
        help="Size of one attention head (head_dim in config.json).",
    )
    intermediate_size: int = setting(
        14336,
        "is",
        "Intermediate size",
        group="shape",
        minimum=1,
        maximum=1_000_000,
        help="Width of the dense MLP (intermediate_size in config.json).",
    )
    vocab_size: int = setting(
        128_256,
        "voc",
        "Vocabulary",
        group="shape",
        minimum=2,
        maximum=10_000_000,
        help="Number of tokens in the vocabulary (vocab_size in config.json).",
    )
    num_experts: int = setting(
        0,
        "ex",
        "Experts",
        group="shape",
        minimum=0,
        maximum=4096,
        help="Experts of each mixture-of-experts layer; 0 means a dense model.",
    )
    experts_per_token: int = setting(
        2,
        "ek",
        "Experts per token",
        group="shape",
        minimum=1,
        maximum=4096,
        help="Experts that each token is routed to (num_experts_per_tok in config.json).",
    )
    moe_intermediate_size: int = setting(
        1536,
        "ei",
        "Expert intermediate size",
        group="shape",
        minimum=1,
        maximum=1_000_000,
        help="Width of one expert's MLP (moe_intermediate_size in config.json).",
    )
    weight_dtype: str = setting(
        "auto",
        "w",
        "Weights",
        group="model",
        help="Precision of the weights (vLLM and SGLang --quantization); 'as published' keeps the checkpoint's own.",
    )
    kv_cache_dtype: str = setting(
        "auto",
        "kv",
        "KV cache",
        group="model",
        help="Precision of the KV cache (vLLM and SGLang --kv-cache-dtype); 'as the checkpoint' means 16 bit, or fp8 "
        "where the checkpoint has scales for it and the engine uses them.",
    )
    max_model_len: int = setting(
        8192,
        "ctx",
        "Context length",
        unit="tokens",
        group="model",
        minimum=16,
        maximum=100_000_000,
        help="Longest prompt plus answer of one request (vLLM --max-model-len, SGLang --context-length).",
    )
    # -- hardware
    gpu: str = setting("H100 SXM", "g", "GPU", group="hardware", help="A GPU of the catalog, or one entered by hand.")
    gpu_memory_gib: float = setting(
        80.0,
        "gm",
        "Memory",
        unit="GiB",
        group="gpu",
        minimum=0.5,
        maximum=10_000,
        help="Memory of one GPU, as nvidia-smi reports it.",
    )
    gpu_bandwidth_gb_s: float = setting(
        2000.0,
        "gb",
        "Memory bandwidth",
        unit="GB/s",
        group="gpu",
        minimum=1,
        maximum=1_000_000,
        help="Data-sheet bandwidth of the GPU's memory; it sets the speed of decoding.",
    )
    gpu_bf16_tflops: float = setting(
        400.0,
        "gf",
        "Dense bf16 rate",
        unit="TFLOP/s",
        group="gpu",
        minimum=0.1,
        maximum=1_000_000,
        help="Data-sheet rate without sparsity; it sets the speed of prefill.",
    )
    gpu_fp8_tflops: float = setting(
        0.0,
        "g8",
        "Dense fp8 rate",
        unit="TFLOP/s",
        group="gpu",
        minimum=0,
        maximum=1_000_000,
        help="Data-sheet rate without sparsity; 0 means the GPU has no fp8.",
    )
    gpu_link_gb_s: float = setting(
        64.0,
        "gl",
        "GPU-to-GPU link, both directions",
        unit="GB/s",
        group="gpu",
        minimum=1,
        maximum=100_000,
        help="NVLink or PCIe bandwidth of one GPU, both directions together; used by tensor and expert parallelism.",
    )
    gpus_per_node: int = setting(
        8,
        "gn",
        "GPUs per node",
        group="gpu",
        minimum=1,
        maximum=1024,
        help="GPUs that the fast link connects; tensor parallelism should stay within a node.",
    )
    tensor_parallel_size: int = setting(
        1,
        "tp",
        "Tensor parallel",
        group="hardware",
        minimum=1,
        maximum=1024,
        help="GPUs that share every layer (vLLM --tensor-parallel-size, SGLang --tp-size).",
    )
    pipeline_parallel_size: int = setting(
        1,
        "pp",
        "Pipeline parallel",
        group="hardware",
        minimum=1,
        maximum=256,
        help="Stages that the layers are cut into, one after the other (vLLM --pipeline-parallel-size, SGLang "
        "--pp-size).",
    )
    expert_parallel: bool = setting(
        False,
        "ep",
        "Expert parallel",
        group="hardware",
        help="Whole experts on each GPU instead of a slice of every expert (vLLM --enable-expert-parallel, SGLang "
        "--ep-size).",
    )
    attention_data_parallel_size: int = setting(
        1,
        "adp",
        "Attention data parallel",
        group="hardware",
        minimum=1,
        maximum=1024,
        help="Attention groups that share the experts (vLLM --data-parallel-size, SGLang --dp-size with "
        "--enable-dp-attention). GPUs of a replica = tensor × pipeline × this.",
    )
    num_replicas: int | None = optional_setting(
        "r",
        "Replicas",
        kind="count",
        group="hardware",
        minimum=1,
        maximum=100_000,
        help="Copies of the model. Empty: as many as the targets need.",
    )
    # -- engine
    engine: str = setting(
        "vllm",
        "e",
        "Engine",
        group="engine",
        help="Serving engine and version whose scheduler and memory rules are planned.",
    )
    gpu_memory_utilization: float | None = optional_setting(
        "gmu",
        "GPU memory utilization",
        kind="number",
        group="engine",
        minimum=0.05,
        maximum=1.0,
        help="Share of GPU memory that the engine may take (vLLM --gpu-memory-utilization, SGLang "
        "--mem-fraction-static). Empty: the engine's default.",
    )
    max_num_seqs: int | None = optional_setting(
        "seqs",
        "Max sequences",
        kind="count",
        group="engine",
        minimum=1,
        maximum=100_000,
        help="Most requests running at once on one replica (vLLM --max-num-seqs, SGLang --max-running-requests). "
        "Empty: the engine's default.",
    )
    max_num_batched_tokens: int | None = optional_setting(
        "mbt",
        "Max batched tokens",
        kind="count",
        group="engine",
        minimum=1,
        maximum=1_000_000,
        help="Most tokens of one engine step, prefill and decode together (vLLM --max-num-batched-tokens; SGLang "
        "limits the prefill with --chunked-prefill-size). Empty: the engine's default.",
    )
    enable_prefix_caching: bool = setting(
        True,
        "pc",
        "Prefix caching",
        group="engine",
        help="Reuse the KV cache of prompts that start alike (vLLM --enable-prefix-caching; SGLang "
        "--disable-radix-cache turns it off).",
    )
    # -- traffic
    demand: str = setting(
        "users",
        "d",
        "Traffic given as",
        group="traffic",
        choices=DEMAND_KINDS,
        help="How you state the load.",
    )
    users: int = setting(
        500,
        "u",
        "Users",
        group="traffic",
        minimum=1,
        maximum=100_000_000,
        help="Users of the service; each sends the requests per hour entered below.",
    )
    requests_per_user_hour: float = setting(
        30.0,
        "uh",
        "Requests per user and hour",
        group="traffic",
        minimum=0.001,
        maximum=100_000,
        help="Mean over the day; the peak factor comes on top.",
    )
    rate_rps: float = setting(
        8.0,
        "rps",
        "Requests per second",
        unit="req/s",
        group="traffic",
        minimum=1e-6,
        maximum=1e6,
        help="Rate at the peak, which the plan must serve.",
    )
    requests_per_day: float = setting(
        360_000.0,
        "rpd",
        "Requests per day",
        group="traffic",
        minimum=0.1,
        maximum=1e11,
        help="Mean per day; the peak factor comes on top.",
    )
    peak_factor: float = setting(
        2.0,
        "pk",
        "Peak ÷ mean",
        group="traffic",
        minimum=1,
        maximum=100,
        help="How many times the mean rate the peak is. Latency is planned at the peak, the bill's requests at the "
        "mean.",
    )
    arrivals: str = setting(
        "poisson",
        "a",
        "Arrivals",
        group="traffic",
        choices=ARRIVAL_KINDS,
        help="How requests arrive: at a rate of their own (Poisson, bursty), all at once, or from a fixed number of "
        "users who wait for their answer.",
    )
    burst_cv: float = setting(
        2.0,
        "cv",
        "Burstiness (CV of gaps)",
        group="traffic",
        minimum=0.05,
        maximum=20,
        help="Standard deviation ÷ mean of the time between requests; 1 is Poisson, more is burstier.",
    )
    concurrent_users: int = setting(
        32,
        "cu",
        "People at once",
        group="traffic",
        minimum=1,
        maximum=100_000,
        help="Concurrent users of the whole service: each sends the next request only after the last answer, as a "
        "closed loop.",
    )
    think_time_s: float = setting(
        0.0,
        "th",
        "Think time",
        unit="s",
        group="traffic",
        minimum=0,
        maximum=100_000,
        help="Pause of a closed-loop user between an answer and the next request.",
    )
    lengths: str = setting(
        "trace",
        "l",
        "Lengths given as",
        group="traffic",
        choices=LENGTH_KINDS,
        help="Prompt and answer lengths: as in a published trace, or a distribution.",
    )
    length_trace: str = setting(
        "azure23_conv",
        "lt",
        "Trace of lengths",
        group="traffic",
        help="Published trace whose prompt and answer lengths are used.",
    )
    prompt_quantiles: str = setting(
        "2.29.181.207.387.403.703.1020.1071.1130.1315.2734.4083.4142.6179.14050",  # Azure 2023, conversation
        "pq",
        "Prompt quantiles",
        unit="tokens",
        group="traffic",
        help="Prompt lengths of your own recording at 0, 1, 5, 10, 20 … 90, 95, 99, 99.9 and 100 %, with a full stop "
        "between them: 12.40.180.",
    )
    output_quantiles: str = setting(
        "7.16.41.54.77.91.103.129.177.384.400.424.451.601.954.1000",  # Azure 2023, conversation
        "oq",
        "Answer quantiles",
        unit="tokens",
        group="traffic",
        help="Answer lengths of your own recording at the same shares.",
    )
    prompt_mean_tokens: float = setting(
        1024.0,
        "p",
        "Prompt, mean",
        unit="tokens",
        group="traffic",
        minimum=1,
        maximum=10_000_000,
        help="Mean prompt length, system prompt included.",
    )
    prompt_spread: float = setting(
        1.0,
        "ps",
        "Prompt, spread ÷ mean",
        group="traffic",
        minimum=0,
        maximum=10,
        help="Standard deviation ÷ mean of the prompt length; 0 means all alike.",
    )
    output_mean_tokens: float = setting(
        256.0,
        "o",
        "Output, mean",
        unit="tokens",
        group="traffic",
        minimum=1,
        maximum=1_000_000,
        help="Mean answer length, reasoning tokens included.",
    )
    output_spread: float = setting(
        1.0,
        "os",
        "Output, spread ÷ mean",
        group="traffic",
        minimum=0,
        maximum=10,
        help="Standard deviation ÷ mean of the answer length; 0 means all alike.",
    )
    shared_prefix_tokens: int = setting(
        0,
        "sp",
        "Shared system prompt",
        unit="tokens",
        group="traffic",
        minimum=0,
        maximum=10_000_000,
        help="Tokens at the start of every prompt that requests have in common; part of the prompt length. 0 means "
        "none.",
    )
    num_prefix_groups: int = setting(
        1,
        "pg",
        "Different system prompts",
        group="traffic",
        minimum=1,
        maximum=100_000,
        help="Number of distinct system prompts of that length, all equally frequent.",
    )
    output_limit_tokens: int | None = optional_setting(
        "max",
        "Answer limit, max_tokens",
        kind="count",
        unit="tokens",
        group="traffic",
        minimum=1,
        maximum=10_000_000,
        help="What clients send as max_tokens. Empty: no limit but the context length.",
    )
    exact_output_limit: bool = setting(
        False,
        "xl",
        "max_tokens is the answer's length",
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
        help="Longer prompts are cut to this by the client. Empty: no limit.",
    )
    # -- targets
    ttft_target_s: float | None = optional_setting(
        "ttft",
        "TTFT target",
        kind="number",
        default=1.0,
        unit="s",
        group="targets",
        minimum=0.001,
        maximum=3600,
        help="Longest time to first token, queueing included. Empty: no target.",
    )
    tpot_target_s: float | None = optional_setting(
        "tpot",
        "TPOT target",
        kind="number",
        default=0.05,
        unit="s",
        group="targets",
        minimum=0.0001,
        maximum=60,
        help="Longest mean time per output token after the first, request by request. Empty: no target.",
    )
    itl_target_s: float | None = optional_setting(
        "itl",
        "ITL target",
        kind="number",
        unit="s",
        group="targets",
        minimum=0.0001,
        maximum=3600,
        help="Longest gap between two tokens: a request meets it when none of its gaps is longer, so that no answer "
        "stalls. Empty: no target.",
    )
    e2e_target_s: float | None = optional_setting(
        "e2e",
        "E2E target",
        kind="number",
        unit="s",
        group="targets",
        minimum=0.001,
        maximum=100_000,
        help="Longest time from arrival to the last token. Empty: no target.",
    )
    target_quantile: float = setting(
        0.95,
        "q",
        "Share of requests",
        group="targets",
        minimum=0.5,
        maximum=0.999,
        help="Share of requests that must meet every target; 0.95 is the p95. Rejected requests and clients that leave "
        "meet none.",
    )
    safety_margin: float = setting(
        0.0,
        "mar",
        "Safety margin",
        group="targets",
        minimum=0,
        maximum=0.9,
        help="Share of every latency target that the plan keeps free: with 0.2 a TTFT target of 2 s is planned for "
        "1.6 s. 0 means none.",
    )
    spare_replicas: int = setting(
        0,
        "sr",
        "Spare replicas",
        group="targets",
        minimum=0,
        maximum=1000,
        help="Extra replicas, so that as many may fail at the peak and the targets still hold.",
    )
    # -- alternatives: what the search may choose from
    my_gpus: str = setting(
        "",
        "mine",
        "My GPUs",
        group="alternatives",
        help="Only these, with how many you have: H100 SXM:8, L40S:4. Without a number: as many as it takes. Empty: "
        "every GPU with a price of the chosen kind.",
    )
    gpu_vendor: str = setting(
        "any", "ven", "Vendor", group="alternatives", choices=GPU_VENDORS, help="Only GPUs of this vendor."
    )
    most_gpus: int | None = optional_setting(
        "mxg",
        "GPUs at most",
        kind="count",
        group="alternatives",
        minimum=1,
        maximum=1_000_000,
        help="The whole deployment, all replicas together. Empty: no limit.",
    )
    one_node: bool = setting(
        False, "one", "One server", group="alternatives", help="All GPUs of the deployment stand in one server."
    )
    measured_only: bool = setting(
        False,
        "mea",
        "Measured GPUs only",
        group="alternatives",
        help="Only GPUs whose kernels were measured; the others take the efficiencies of a related one.",
    )
    # -- prices
    price_kind: str = setting(
        "ondemand",
        "pri",
        "Kind of price",
        group="prices",
        choices=PRICE_KINDS,
        help="Which published price of a GPU-hour counts: on demand, reserved over years, spot and marketplace "
        "capacity, or GPUs that you own, which cost depreciation, power and people.",
    )
    usd_per_gpu_hour: float | None = optional_setting(
        "usd",
        "Price per GPU-hour",
        kind="number",
        unit="USD",
        group="prices",
        minimum=0,
        maximum=10_000,
        help="What you pay for one GPU. Empty: the published offer in the middle of its kind, or 2 USD where there is "
        "none.",
    )
    api_usd_per_mtok_input: float | None = optional_setting(
        "ai",
        "API price, input",
        kind="number",
        unit="USD per million tokens",
        group="prices",
        minimum=0,
        maximum=10_000,
        help="Hosted API's price for prompt tokens. Empty: the median of published offers for this model.",
    )
    api_usd_per_mtok_output: float | None = optional_setting(
        "ao",
        "API price, output",
        kind="number",
        unit="USD per million tokens",
        group="prices",
        minimum=0,
        maximum=10_000,
        help="Hosted API's price for answer tokens. Empty: the median of published offers for this model.",
    )
    hours_per_month: float = setting(
        730.0,
        "hpm",
        "Hours paid per month",
        unit="h",
        group="prices",
        minimum=1,
        maximum=744,
        help="Hours a month that the GPUs run, serve and are paid for; 730 is around the clock.",
    )
    # -- simulation
    num_requests: int = setting(
        2000,
        "nr",
        "Simulated requests",
        group="simulation",
        minimum=1,
        maximum=2_000_000,
        help="More requests give steadier percentiles and take longer; a burst has exactly this many.",
    )
    seed: int = setting(
        7,
        "s",
        "Seed",
        group="simulation",
        minimum=0,
        maximum=2**31 - 1,
        help="Start of the random draws; the same seed gives the same requests.",
    )


def fields_by_name() -> dict[str, dataclasses.Field[Any]]:
    """All fields of the Scenario with their metadata, in form order."""
    return dict(_fields_in_order())


PLAN_FREE_GROUPS = ("prices", "time", "alternatives")


def sought(inputs: Inputs) -> tuple[str, ...]:
    """Fields that the question "take" asks for and so does not read: how much traffic there is."""
    amounts = ("users", "rate_rps", "requests_per_day", "concurrent_users")
    return (*amounts, "num_requests") if inputs.arrivals == "once" else amounts


@lru_cache(maxsize=1)
def unsimulated_names() -> frozenset[str]:
    """Fields that no plan's simulation depends on: prices, time, what a search may choose from, the plan's name."""
    grouped = {name for name, item in _fields_in_order() if item.metadata["group"] in PLAN_FREE_GROUPS}
    return frozenset(grouped | {"title"})


@lru_cache(maxsize=1)
def _fields_in_order() -> tuple[tuple[str, dataclasses.Field[Any]], ...]:
    """The fields that the bases declare stand behind the last one of the group that they belong to."""
    inherited = {item.name: item for item in dataclasses.fields(Inputs.__mro__[1])}
    advanced = {item.name for item in dataclasses.fields(EngineRuntime)}
    ordered = [(item.name, item) for item in dataclasses.fields(Inputs) if item.name not in inherited]
    pools = {name for name, item in inherited.items() if item.metadata["group"] == "hardware"} - advanced
    measured = {name for name, item in inherited.items() if item.metadata["group"] == "measured"}
    others = inherited.keys() - advanced - pools - measured
    for group, names in (("engine", advanced), ("hardware", pools), ("prices", others), ("simulation", measured)):
        place = 1 + max(index for index, (_, item) in enumerate(ordered) if item.metadata["group"] == group)
        ordered[place:place] = [(name, item) for name, item in inherited.items() if name in names]
    return tuple(ordered)
