"""Engine settings: one scheduler, described by data.

Presets (catalog/engines.csv) differ in values only: how KV cache is reserved, who goes first,
what happens when memory or the queue runs out, and which defaults a version ships.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from planner.errors import require_choice, require_int, require_number
from planner.inputs.engine_version import release_of

V1_DEFAULT = (0, 8)  # vLLM release with V1 as the default engine core
MAMBA_FULL_MEMORY_RATIO = 0.9  # SGLang's default: memory of states ÷ memory of the cache, without a number of slots


class Batching(StrEnum):
    """When a batch may change."""

    CONTINUOUS = "continuous"  # at every step
    STATIC = "static"  # only when its last sequence has finished
    SINGLE = "single"  # one request at a time


class KvReservation(StrEnum):
    """How much KV cache a request holds from admission."""

    PAGED = "paged"  # what it has written, block by block
    OUTPUT_LIMIT = "reserve_output"  # prompt + its output limit (max_tokens)
    MODEL_LIMIT = "reserve_max"  # the model's context limit, whatever the request needs


class StepOrder(StrEnum):
    """What a step serves first."""

    DECODE_FIRST = "decode_first"  # running first, then prompts within the token budget (vLLM V1, llama.cpp)
    PREFILL_FIRST = "prefill_first"  # a prefill-only step whenever a prompt can be admitted (SGLang, TGI, vLLM V0)


class OnMemoryShortage(StrEnum):
    """What happens when a running sequence needs a block and none is free."""

    PREEMPT_LAST = "preempt_last"  # last admitted is evicted, re-queued at the head and recomputed (vLLM)
    RETRACT_SHORTEST = "retract_shortest"  # fewest output tokens first (SGLang)
    NEVER = "never"  # admission reserves enough that it cannot happen


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Settings of one engine. None = resolved from the device by `planner.memory`, as the engine does.

    The fields carry vLLM's flag names where one exists. `family` chooses the memory arithmetic
    (vllm, sglang, trtllm, tgi, llamacpp, generic), `version` its edition.
    """

    name: str = "vllm"
    family: str = "vllm"
    version: str = ""
    use_v1: bool | None = None  # vLLM releases that had both engine cores; None: V1 from 0.8 on
    gpu_memory_utilization: float | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    enable_chunked_prefill: bool = True
    block_size: int = 16
    batching: Batching = Batching.CONTINUOUS
    kv_reservation: KvReservation = KvReservation.PAGED
    step_order: StepOrder = StepOrder.DECODE_FIRST
    on_memory_shortage: OnMemoryShortage = OnMemoryShortage.PREEMPT_LAST
    long_prefill_token_threshold: int = 0  # 0: no limit of its own
    max_queued_requests: int | None = None  # None: unbounded; beyond it a request is rejected
    batch_timeout_s: float | None = None  # STATIC: an incomplete batch starts after this wait; None: never
    enable_prefix_caching: bool = True
    async_scheduling: bool = True
    kv_unified: bool = False  # llama.cpp: all slots share one context instead of having one each
    offline: bool = False  # called in the process, without an HTTP server; vLLM then takes larger steps by default
    behind_dynamo: bool = False  # clients speak to Dynamo's frontend instead of the engine's own server
    cuda_graphs: bool = True
    num_speculative_tokens: int = 0
    speculative_acceptance: float = 0.0  # chance that one drafted token is accepted
    new_token_ratio: float = 0.7  # SGLang: share of the remaining output counted at admission
    min_new_token_ratio: float = 0.098  # SGLang: the ratio decays linearly to this over 600 decode steps
    max_concurrent_requests: int | None = None  # waiting and running together; beyond it: rejected (TGI)
    waiting_served_ratio: float = 0.0  # TGI: prompts pause decoding once waiting / running reaches this, ...
    max_waiting_steps: int = 0  # ... or after this many decode steps; 0 with ratio 0: prompts never wait
    plain_awq: bool = False  # --quantization awq: the kernels of AWQ itself instead of Marlin's
    moe_runner_backend: str = "auto"  # SGLang: which kernels run the experts (flashinfer_trtllm on Blackwell)
    patience_s: float | None = None  # a client leaves when its first token takes longer; None: never
    timeout_s: float | None = None  # a client leaves when its whole answer takes longer; None: never
    stream_interval_tokens: int = 1  # tokens per message to the client after the first (TensorRT-LLM: stream_interval)
    receive_interval_steps: int = 1  # decode steps between looks at the inbox (SGLang: --scheduler-recv-interval)
    max_loras: int = 0  # distinct adapters in one step; 0: LoRA is off, requests for an adapter are rejected
    max_lora_rank: int = 16
    max_state_slots: int | None = None  # SGLang: states of hybrids (max_mamba_cache_size); None: by memory
    mamba_full_memory_ratio: float = MAMBA_FULL_MEMORY_RATIO
    max_total_tokens: int | None = None  # KV cache at most (SGLang --max-total-tokens, TensorRT-LLM max_tokens)
    max_cudagraph_capture_size: int | None = None  # largest batch with a CUDA graph; None: as the engine chooses
    images_per_prompt: int | None = None  # vLLM --limit-mm-per-prompt; None: as many as fit
    encoder_data_parallel: bool = False  # ranks share out images and hold the vision tower whole
    latent_cache: bool = True  # False: the user has latent attention cache keys and values of every head
    cache_state_prefixes: bool | None = None  # hybrids: another state a sequence, for prefix reuse; None: by release
    ngram_on_gpu: bool | None = None  # hashed n-gram tables: None = where the engine puts them by default
    host_memory_gib: float | None = None  # CPU memory of a replica's hosts; None: enough
    kv_offload_gib: float = 0.0  # CPU memory that keeps evicted KV blocks, over all ranks of a replica
    source: str = ""
    source_date: str = ""  # when the source was read or the version shipped

    def __post_init__(self) -> None:
        require_choice("family", self.family, ("vllm", "sglang", "trtllm", "tgi", "llamacpp", "generic"))
        if self.gpu_memory_utilization is not None:
            require_number("gpu_memory_utilization", self.gpu_memory_utilization, above=0, at_most=1)
        for name in ("max_num_seqs", "max_num_batched_tokens", "max_state_slots", "images_per_prompt"):
            if getattr(self, name) is not None:
                require_int(name, getattr(self, name), at_most=10_000_000)
        if self.max_total_tokens is not None:
            require_int("max_total_tokens", self.max_total_tokens, at_most=10**9)
        if self.max_cudagraph_capture_size is not None:
            require_int("max_cudagraph_capture_size", self.max_cudagraph_capture_size, at_most=100_000)
        require_number("mamba_full_memory_ratio", self.mamba_full_memory_ratio, above=0, at_most=1000)
        require_int("block_size", self.block_size, at_most=100_000)
        if self.max_queued_requests is not None:
            require_int("max_queued_requests", self.max_queued_requests, at_least=0)
        if self.batch_timeout_s is not None:
            require_number("batch_timeout_s", self.batch_timeout_s, at_least=0)
        require_int("long_prefill_token_threshold", self.long_prefill_token_threshold, at_least=0)
        require_int("num_speculative_tokens", self.num_speculative_tokens, at_least=0, at_most=64)
        require_number("speculative_acceptance", self.speculative_acceptance, at_least=0, at_most=1)
        require_number("new_token_ratio", self.new_token_ratio, at_least=0, at_most=1)
        require_number("min_new_token_ratio", self.min_new_token_ratio, at_least=0, at_most=1)
        if self.max_concurrent_requests is not None:
            require_int("max_concurrent_requests", self.max_concurrent_requests)
        require_number("waiting_served_ratio", self.waiting_served_ratio, at_least=0)
        require_int("max_waiting_steps", self.max_waiting_steps, at_least=0)
        if self.patience_s is not None:
            require_number("patience_s", self.patience_s, above=0)
        if self.timeout_s is not None:
            require_number("timeout_s", self.timeout_s, above=0)
        require_int("stream_interval_tokens", self.stream_interval_tokens, at_most=1_000_000)
        require_int("receive_interval_steps", self.receive_interval_steps, at_most=1_000_000)
        require_int("max_loras", self.max_loras, at_least=0, at_most=4096)
        require_int("max_lora_rank", self.max_lora_rank, at_most=4096)
        for name in ("kv_unified", "offline", "async_scheduling"):
            require_choice(name, getattr(self, name), (False, True))
        require_choice("ngram_on_gpu", self.ngram_on_gpu, (None, False, True))
        require_choice("cache_state_prefixes", self.cache_state_prefixes, (None, False, True))
        require_number("kv_offload_gib", self.kv_offload_gib, at_least=0)
        if self.host_memory_gib is not None:
            require_number("host_memory_gib", self.host_memory_gib, above=0)

    @property
    def is_v0(self) -> bool:
        """Whether vLLM's first engine core runs."""
        first = release_of(self.version) < V1_DEFAULT if self.use_v1 is None else not self.use_v1
        return self.family == "vllm" and first

    @property
    def schedules_ahead(self) -> bool:
        """Whether the engine fills a step as soon as it has launched the one before, so that an arrival misses it.

        vLLM with async scheduling keeps two steps in flight (`EngineCore.step_with_batch_queue`); SGLang's overlap
        scheduler (`event_loop_overlap`) and TensorRT-LLM's (`_executor_loop_overlap`) take the results of a step after
        they have launched the next.
        """
        return self.async_scheduling and self.family in ("vllm", "sglang", "trtllm") and not self.is_v0

    def with_patient_clients(self) -> EngineSettings:
        """The same engine with clients who never give up and a queue without limit, which shows its capacity.

        Where waiting and running requests together are limited, that limit still bounds the running ones.
        """
        most = self.max_concurrent_requests
        slots = self.max_num_seqs if most is None else min(self.max_num_seqs or most, most)
        return replace(
            self,
            max_num_seqs=slots,
            max_queued_requests=None,
            max_concurrent_requests=None,
            patience_s=None,
            timeout_s=None,
        )
