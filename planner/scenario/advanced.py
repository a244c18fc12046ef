"""Engine-tuning inputs: the part of the Scenario that most plans leave at its defaults."""

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
        "auto",
        "cp",
        "Chunked prefill",
        group="advanced",
        choices=CHUNKED_PREFILL_KINDS,
        help="Long prompts enter in pieces beside running decodes (vLLM --enable-chunked-prefill, SGLang "
        "--chunked-prefill-size).",
    )
    long_prefill_token_threshold: int = setting(
        0,
        "lpt",
        "Long-prefill threshold",
        unit="tokens",
        group="advanced",
        minimum=0,
        maximum=1_000_000,
        help="Most tokens of one prompt in one step (vLLM --long-prefill-token-threshold); 0 means no limit of its "
        "own.",
    )
    async_scheduling: str = setting(
        "auto",
        "asy",
        "Async scheduling",
        group="advanced",
        choices=ASYNC_SCHEDULING_KINDS,
        help="Prepares the next step while one runs (vLLM --async-scheduling). From 0.26 on vLLM then keeps two "
        "steps' tokens in sliding windows, which can cost several GiB of KV cache at long contexts.",
    )
    block_size: int | None = optional_setting(
        "bs",
        "KV block size",
        kind="count",
        unit="tokens",
        group="advanced",
        minimum=1,
        maximum=1024,
        help="Tokens per block of the paged KV cache (vLLM --block-size, SGLang --page-size). Empty: the engine's "
        "default.",
    )
    max_state_slots: int | None = optional_setting(
        "mss",
        "States kept (SGLang)",
        kind="count",
        group="advanced",
        minimum=1,
        maximum=1_000_000,
        help="Recurrent states that a hybrid model keeps, all attention ranks together (SGLang "
        "--max-mamba-cache-size); a running request holds three to five. Empty: as many as memory allows.",
    )
    mamba_full_memory_ratio: float | None = optional_setting(
        "msr",
        "State memory ratio (SGLang)",
        kind="number",
        group="advanced",
        minimum=0.01,
        maximum=100.0,
        help="State memory ÷ KV cache memory of a hybrid model (SGLang --mamba-full-memory-ratio): more lets more "
        "requests run at once, less leaves more KV cache. Empty: 0.9.",
    )
    state_dtype: str = setting(
        "auto",
        "sd",
        "State type",
        group="advanced",
        choices=STATE_DTYPES,
        help="Precision of recurrent states (vLLM --mamba-ssm-cache-dtype, SGLang --mamba-ssm-dtype).",
    )
    media: str = setting(
        "auto",
        "med",
        "Images and video",
        group="advanced",
        choices=MEDIA,
        help="What clients send to a vision model. vLLM sets memory aside for the largest image or video "
        "(--limit-mm-per-prompt); without video Qwen2.5-VL needs several GiB less. Text only does not load the vision "
        "tower (--language-model-only).",
    )
    kv_offload_gib: float = setting(
        0.0,
        "off",
        "KV offload to CPU memory",
        unit="GiB",
        group="advanced",
        minimum=0,
        maximum=100_000,
        help="CPU memory that keeps evicted prefixes for reuse, per replica (vLLM --kv-offloading-size, SGLang "
        "--hicache-size). 0 means off.",
    )
    ngram_tables: str = setting(
        "auto",
        "ngt",
        "N-gram tables",
        group="advanced",
        choices=NGRAM_PLACES,
        help="Where the model's hashed n-gram tables are kept.",
    )
    occupied_gib: float = setting(
        0.0,
        "occ",
        "GPU memory held by others",
        unit="GiB",
        group="advanced",
        minimum=0,
        maximum=10_000,
        help="Memory of each GPU that other processes already use when the engine starts.",
    )
    num_speculative_tokens: int = setting(
        0,
        "spec",
        "Speculative tokens",
        group="advanced",
        minimum=0,
        maximum=32,
        help="Tokens drafted per step (vLLM --speculative-config num_speculative_tokens, SGLang "
        "--speculative-num-steps); 0 means off.",
    )
    speculative_acceptance: float = setting(
        0.7,
        "acc",
        "Acceptance per drafted token",
        group="advanced",
        minimum=0,
        maximum=1,
        help="Chance that the model accepts a drafted token, given that it accepted those before; it depends on your "
        "text.",
    )
    draft_model: str = setting(
        "",
        "dm",
        "Draft model",
        group="advanced",
        help="Model that drafts (vLLM --speculative-config model, SGLang --speculative-draft-model-path). Empty: the "
        "model's own multi-token-prediction layers, or a drafter that takes no memory.",
    )
    num_lora_adapters: int = setting(
        0,
        "lora",
        "LoRA adapters",
        group="advanced",
        minimum=0,
        maximum=100_000,
        help="Adapters that clients choose from (vLLM and SGLang --enable-lora); 0 means none.",
    )
    lora_popularity: float = setting(
        1.0,
        "lp",
        "LoRA popularity (Zipf)",
        group="advanced",
        minimum=0,
        maximum=10,
        help="Exponent s: adapter k gets a share of requests proportional to 1 ÷ k^s. 0 means all equally popular.",
    )
    max_loras: int | None = optional_setting(
        "ls",
        "LoRA adapters per batch",
        kind="count",
        group="advanced",
        minimum=1,
        maximum=4096,
        help="Adapters that one batch can mix; each takes a full slot of GPU memory (vLLM --max-loras, SGLang "
        "--max-loras-per-batch). Empty: the engine's default.",
    )
    max_lora_rank: int = setting(
        16,
        "lr",
        "LoRA rank",
        group="advanced",
        minimum=1,
        maximum=4096,
        help="Largest rank of any adapter; it sets the size of a slot (vLLM and SGLang --max-lora-rank).",
    )
    patience_s: float | None = optional_setting(
        "pat",
        "Client patience",
        kind="number",
        unit="s",
        group="advanced",
        minimum=0.001,
        maximum=100_000,
        help="A client leaves when its first token takes longer. Empty: it never does.",
    )
    timeout_s: float | None = optional_setting(
        "to",
        "Client timeout",
        kind="number",
        unit="s",
        group="advanced",
        minimum=0.001,
        maximum=100_000,
        help="A client leaves when its whole answer takes longer. Empty: it never does.",
    )
    router: str = setting(
        "round_robin",
        "rt",
        "Router over replicas",
        group="advanced",
        choices=ROUTERS,
        help="How the load balancer chooses a replica for each request.",
    )
