"""Inputs for those who tune an engine: the part of the Scenario that most plans leave alone."""

from __future__ import annotations

from dataclasses import dataclass

from planner.model import MEDIA, STATE_DTYPES
from planner.scenario.settings import optional_setting, setting

CHUNKED_PREFILL_KINDS = ("auto", "on", "off")
ASYNC_SCHEDULING_KINDS = ("auto", "off")
NGRAM_PLACES = ("auto", "gpu", "host")
ROUTERS = ("round_robin", "random", "least_outstanding", "power_of_two", "prefix_affinity")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvancedEngine:
    """Prefill, KV blocks, offload, speculation, LoRA, impatient clients and the router."""

    chunked_prefill: str = setting(
        "auto", "cp", "Chunked prefill", group="advanced", choices=CHUNKED_PREFILL_KINDS, help="auto = as the engine."
    )
    long_prefill_token_threshold: int = setting(
        0,
        "lpt",
        "Long-prefill threshold",
        unit="tokens",
        group="advanced",
        minimum=0,
        maximum=1_000_000,
        help="Most tokens of one prompt in one step; 0 = no limit of its own.",
    )
    async_scheduling: str = setting(
        "auto",
        "asy",
        "Async scheduling",
        group="advanced",
        choices=ASYNC_SCHEDULING_KINDS,
        help="Prepares a step while another runs. vLLM from 0.26 on then keeps the tokens of two steps in sliding "
        "windows, which may take gibibytes of cache from long contexts.",
    )
    block_size: int | None = optional_setting(
        "bs",
        "KV block size",
        kind="count",
        unit="tokens",
        group="advanced",
        minimum=1,
        maximum=1024,
        help="Tokens of one block of the paged KV cache.",
    )
    max_state_slots: int | None = optional_setting(
        "mss",
        "States kept (SGLang)",
        kind="count",
        group="advanced",
        minimum=1,
        maximum=1_000_000,
        help="max_mamba_cache_size of hybrids, over all attention ranks; a running request holds three. "
        "Empty = as memory allows.",
    )
    mamba_full_memory_ratio: float | None = optional_setting(
        "msr",
        "State memory ratio (SGLang)",
        kind="number",
        group="advanced",
        minimum=0.01,
        maximum=100.0,
        help="mamba_full_memory_ratio of hybrids: more states let more requests run at once, fewer leave a longer "
        "cache. Empty = 0.9.",
    )
    state_dtype: str = setting(
        "auto",
        "sd",
        "State type",
        group="advanced",
        choices=STATE_DTYPES,
        help="Of recurrent states: mamba_ssm_cache_dtype of vLLM, mamba_ssm_dtype of SGLang.",
    )
    media: str = setting(
        "auto",
        "med",
        "Images and video",
        group="advanced",
        choices=MEDIA,
        help="What a model with a vision tower is sent. vLLM keeps memory for the largest image or video: without "
        "video that of Qwen2.5-VL shrinks by gibibytes; text only leaves the tower out (language_model_only).",
    )
    kv_offload_gib: float = setting(
        0.0,
        "off",
        "KV offload to CPU memory",
        unit="GiB",
        group="advanced",
        minimum=0,
        maximum=100_000,
        help="Over all GPUs of a replica. Keeps evicted prefixes for reuse.",
    )
    ngram_tables: str = setting(
        "auto",
        "ngt",
        "N-gram tables",
        group="advanced",
        choices=NGRAM_PLACES,
        help="Where a model's hashed n-gram tables stand; auto = where the engine puts them by default.",
    )
    occupied_gib: float = setting(
        0.0,
        "occ",
        "GPU memory held by others",
        unit="GiB",
        group="advanced",
        minimum=0,
        maximum=10_000,
        help="On each GPU, before the engine starts.",
    )
    num_speculative_tokens: int = setting(
        0, "spec", "Speculative tokens", group="advanced", minimum=0, maximum=32, help="0 = off."
    )
    speculative_acceptance: float = setting(
        0.7, "acc", "Acceptance per drafted token", group="advanced", minimum=0, maximum=1
    )
    draft_model: str = setting(
        "",
        "dm",
        "Draft model",
        group="advanced",
        help="Catalog id. Empty = the model's own multi-token-prediction layers, or no memory of its own.",
    )
    num_lora_adapters: int = setting(
        0, "lora", "LoRA adapters", group="advanced", minimum=0, maximum=100_000, help="How many are served. 0 = none."
    )
    lora_popularity: float = setting(
        1.0,
        "lp",
        "LoRA popularity (Zipf)",
        group="advanced",
        minimum=0,
        maximum=10,
        help="Adapter k is asked for in proportion to 1 ÷ k to this power. 0 = all alike.",
    )
    max_loras: int | None = optional_setting(
        "ls",
        "LoRA adapters per batch",
        kind="count",
        group="advanced",
        minimum=1,
        maximum=4096,
        help="GPU slots (max_loras); each is allocated in full.",
    )
    max_lora_rank: int = setting(16, "lr", "LoRA rank", group="advanced", minimum=1, maximum=4096)
    patience_s: float | None = optional_setting(
        "pat",
        "Client patience",
        kind="number",
        unit="s",
        group="advanced",
        minimum=0.001,
        maximum=100_000,
        help="A client leaves when its first token takes longer. Empty = never.",
    )
    timeout_s: float | None = optional_setting(
        "to",
        "Client timeout",
        kind="number",
        unit="s",
        group="advanced",
        minimum=0.001,
        maximum=100_000,
        help="A client leaves when its whole answer takes longer. Empty = never.",
    )
    router: str = setting(
        "round_robin",
        "rt",
        "Router over replicas",
        group="advanced",
        choices=ROUTERS,
        help="How requests are dealt out to the replicas.",
    )
