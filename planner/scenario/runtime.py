"""Inputs that say how the engine runs: its release, its process, its graphs, and what a benchmark client counts."""

from __future__ import annotations

from dataclasses import dataclass

from planner.scenario.advanced import AdvancedEngine
from planner.scenario.settings import optional_setting, setting

AUTO_ON_OFF = ("auto", "on", "off")
ENGINE_CORES = ("auto", "v0", "v1")
MOE_BACKENDS = ("auto", "triton", "flashinfer_trtllm", "aiter")
MEASURED_REQUESTS = ("steady", "all")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRuntime(AdvancedEngine):
    """Release, process, graphs and client of the engine; each default is the engine's own."""

    engine_version: str = setting(
        "",
        "ev",
        "Engine version",
        group="engine",
        help="Any release, such as 0.30 or 0.27.1: its defaults and its memory rules apply. Empty: the newest that "
        "Headroom knows.",
    )
    engine_core: str = setting(
        "auto",
        "core",
        "vLLM engine core",
        group="advanced",
        choices=ENGINE_CORES,
        help="VLLM_USE_V1 of releases that had both; auto = V1 from 0.8 on.",
    )
    enforce_eager: bool = setting(
        False,
        "eager",
        "Without CUDA graphs",
        group="advanced",
        help="vLLM --enforce-eager, SGLang --disable-cuda-graph: frees the memory of the graphs; every decode step "
        "launches its kernels one by one.",
    )
    max_cudagraph_capture_size: int | None = optional_setting(
        "mcs",
        "Largest captured batch",
        kind="count",
        group="advanced",
        minimum=1,
        maximum=100_000,
        help="vLLM --max-cudagraph-capture-size (tokens), SGLang --cuda-graph-max-bs (sequences): fewer CUDA graphs "
        "take less memory; larger batches run without. Empty: as the engine chooses.",
    )
    max_total_tokens: int | None = optional_setting(
        "mtt",
        "KV cache tokens at most",
        kind="count",
        group="advanced",
        minimum=1,
        maximum=1_000_000_000,
        help="SGLang --max-total-tokens, TensorRT-LLM kv_cache_config.max_tokens: the cache holds no more, even if "
        "memory is left. Empty: as many as fit.",
    )
    images_per_prompt: int | None = optional_setting(
        "ipp",
        "Images per prompt",
        kind="count",
        group="advanced",
        minimum=1,
        maximum=1_000_000,
        help="vLLM --limit-mm-per-prompt: bounds the images for which it reserves encoder memory. Empty: no limit.",
    )
    encoder_data_parallel: bool = setting(
        False,
        "edp",
        "Whole vision tower on every GPU",
        group="advanced",
        help="vLLM --mm-encoder-tp-mode data, SGLang --mm-enable-dp-encoder: the GPUs of a replica share out images "
        "instead of dividing the vision tower; each then holds all of it.",
    )
    plain_awq: bool = setting(
        False,
        "awq",
        "AWQ without Marlin",
        group="advanced",
        help="--quantization awq: SGLang, and vLLM before 0.26, then run AWQ's own kernels, which are slower. Without "
        "the flag they convert the weights to Marlin's format while loading.",
    )
    moe_runner_backend: str = setting(
        "auto",
        "moe",
        "Kernels of the experts",
        group="advanced",
        choices=MOE_BACKENDS,
        help="SGLang --moe-runner-backend, TensorRT-LLM moe_config, vLLM --moe-backend, and on AMD "
        "VLLM_ROCM_USE_AITER=1. auto = as the engine chooses for model and GPU.",
    )
    latent_cache: str = setting(
        "auto",
        "mla",
        "Latent cache (MLA)",
        group="advanced",
        choices=("auto", "off"),
        help="off = keys and values of every head are cached (VLLM_MLA_DISABLE, llama.cpp without MLA).",
    )
    state_prefixes: str = setting(
        "auto",
        "spx",
        "Prefix caching of states",
        group="advanced",
        choices=AUTO_ON_OFF,
        help="Hybrid models only: a running sequence keeps one more state for reuse. auto = as the release does.",
    )
    kv_unified: str = setting(
        "auto",
        "kvu",
        "One context for all slots",
        group="advanced",
        choices=AUTO_ON_OFF,
        help="llama-server --kv-unified.",
    )
    decode_context_parallel_size: int = setting(
        1,
        "dcp",
        "Decode context parallel",
        group="advanced",
        minimum=1,
        maximum=64,
        help="vLLM --decode-context-parallel-size: ranks of a tensor-parallel group that share one sequence's cache.",
    )
    offline: bool = setting(
        False,
        "inp",
        "Called in the process",
        group="advanced",
        help="No HTTP server in front (vLLM's LLM class, trtllm-bench, llama-bench): no tokenisation, no streaming. "
        "vLLM then takes larger steps by default.",
    )
    behind_dynamo: bool = setting(
        False,
        "dyn",
        "Behind Dynamo",
        group="advanced",
        help="Clients speak to the frontend of NVIDIA Dynamo, written in Rust, instead of the engine's own server in "
        "Python: less work for each streamed token.",
    )
    stream_interval_tokens: int = setting(
        1,
        "si",
        "Stream interval",
        unit="tokens",
        group="advanced",
        minimum=1,
        maximum=1000,
        help="Tokens of one message to the client after the first token, which is sent at once: vLLM and SGLang "
        "--stream-interval, TensorRT-LLM stream_interval. Fewer messages are less work for the API server, and clients "
        "see gaps of so many steps.",
    )
    receive_interval_steps: int = setting(
        1,
        "ri",
        "Receive interval",
        unit="steps",
        group="advanced",
        minimum=1,
        maximum=10_000,
        help="SGLang --scheduler-recv-interval: the scheduler looks for new requests only every so many decode steps.",
    )
    host_memory_gib: float | None = optional_setting(
        "hm",
        "Host memory",
        kind="number",
        unit="GiB",
        group="advanced",
        minimum=0.5,
        maximum=1_000_000,
        help="CPU memory for one replica: it must hold offloaded KV blocks (vLLM --kv-offloading-size), n-gram tables, "
        "and the layers that llama.cpp leaves on the CPU. Empty: enough.",
    )
    gpu_total_gib: float | None = optional_setting(
        "gt",
        "GPU memory that the driver shows",
        kind="number",
        unit="GiB",
        group="advanced",
        minimum=0.5,
        maximum=10_000,
        help="Where it differs from the catalog: a MIG slice, a vGPU, another board. Empty: as the catalog says.",
    )
    measured_requests: str = setting(
        "steady",
        "mr",
        "Requests that count",
        group="simulation",
        choices=MEASURED_REQUESTS,
        help="steady = after warm-up, as users see a service; all = every request and the whole span, first wave and "
        "last answers included, as benchmark clients report.",
    )
