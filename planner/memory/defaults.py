"""Engine limits that the user did not set, derived from the device as the engines do."""

from __future__ import annotations

from dataclasses import dataclass

from planner.inputs import EngineSettings, Gpu, KvReservation, Parallelism
from planner.memory.edition import (
    HOPPER_BY_NAME,
    IMAGE_IN_STEP,
    KV_OF_CHECKPOINT,
    LARGEST_BATCH,
    SMALL_GB10,
    TRTLLM_2048_SEQUENCES,
    TWO_BATCHES_IN_FLIGHT,
    UTILIZATION_092,
    Edition,
    edition_of,
)
from planner.memory.sglang_limits import sglang_limits, sglang_sequences, sglang_share
from planner.model import ModelShape

V0_CHUNKED_PREFILL_FROM_TOKENS = 32_768  # V0 chunks prefill only for models longer than this
SGLANG_SEQUENCES_WHEN_DRAFTING = 48  # server_args.py: where max_running_requests is left open
LARGE_GPU_GIB = 70.0
LARGEST_GPU_GIB = 160.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """Settings with every limit filled in.

    `in_flight_tokens` counts all overlapping batches: windowed layers keep their tokens until the batch is done.
    """

    edition: Edition
    gpu_memory_utilization: float
    max_num_seqs: int
    max_num_batched_tokens: int
    block_size: int
    in_flight_tokens: int
    images_per_prompt: int | None = None


def resolve(
    engine: EngineSettings,
    gpu: Gpu,
    parallelism: Parallelism,
    max_model_len: int,
    *,
    vision_parameters: float = 0.0,
    image_tokens: int = 0,
) -> Resolved:
    """Fill in the limits that the user did not set.

    Parameters
    ----------
    engine : EngineSettings
        None = the engine decides.
    gpu : Gpu
        The defaults follow its memory and name.
    parallelism : Parallelism
        SGLang reserves more on more ranks.
    max_model_len : int
        Longest sequence [tokens]; without chunked prefill a whole prompt must fit into one step.
    vision_parameters : float
        V0 does not chunk prefill for models with images; SGLang leaves room for the tower.
    image_tokens : int
        Tokens that must enter in one step; vLLM from v0.22 on raises its default to them.

    Returns
    -------
    Resolved
        Every limit as a number.

    Notes
    -----
    vLLM `EngineArgs.get_batch_defaults`: 8,192 tokens and 1,024 sequences from 70 GiB on, except on A100, else 2,048
    and 256. Up to v0.8 only devices named H100 or H200 count as large; from v0.28 on devices of 160 GiB and more take
    16,384 tokens, and from v0.33 on GB10 counts as small. vLLM's LLM class, without a server, takes 16,384 and 8,192
    tokens. SGLang and llama.cpp: their server arguments.
    """
    edition = edition_of(engine)
    seqs, tokens = _batch_defaults(edition, gpu, parallelism, offline=engine.offline)
    if edition.family == "vllm" and edition.since(IMAGE_IN_STEP):
        tokens = max(tokens, image_tokens)
    tokens = engine.max_num_batched_tokens or tokens
    if edition.family == "sglang" and engine.num_speculative_tokens:
        seqs = max(1, SGLANG_SEQUENCES_WHEN_DRAFTING // parallelism.attention_data_parallel_size)
    if engine.max_num_seqs is not None:
        seqs = engine.max_num_seqs
    if edition.is_v0 and engine.max_num_batched_tokens is None:
        tokens = _first_engine_tokens(edition, max_model_len, has_images=vision_parameters > 0)
    elif not engine.enable_chunked_prefill:
        tokens = max(tokens, max_model_len)
    utilization = engine.gpu_memory_utilization
    if utilization is None:
        drafts = engine.num_speculative_tokens > 0
        utilization = default_utilization(edition, gpu, parallelism, drafts=drafts, vision_parameters=vision_parameters)
    if (
        engine.kv_reservation is KvReservation.MODEL_LIMIT
        and engine.max_num_seqs is None
        and edition.family == "generic"
    ):
        seqs = min(seqs, 64)
    return Resolved(
        edition=edition,
        gpu_memory_utilization=utilization,
        max_num_seqs=min(seqs, tokens) if edition.family == "vllm" else seqs,
        max_num_batched_tokens=tokens,
        block_size=engine.block_size,
        in_flight_tokens=tokens * _overlapping_batches(edition, engine, parallelism),
        images_per_prompt=engine.images_per_prompt,
    )


def _first_engine_tokens(edition: Edition, max_model_len: int, *, has_images: bool) -> int:
    """Tokens of a step of vLLM's first engine, which chunks the prompts of long contexts only."""
    if max_model_len > V0_CHUNKED_PREFILL_FROM_TOKENS and not has_images:
        return 512 if edition.number < (0, 7) else 2048
    return max(2048, max_model_len)


def _overlapping_batches(edition: Edition, engine: EngineSettings, parallelism: Parallelism) -> int:
    """Batches in flight at once: one per pipeline stage, or two with async scheduling (max_concurrent_batches)."""
    if edition.family != "vllm" or not edition.since(TWO_BATCHES_IN_FLIGHT):
        return 1
    stages = parallelism.pipeline_parallel_size
    return 2 if stages == 1 and engine.async_scheduling else stages


def kv_cache_type(model: ModelShape, engine: EngineSettings, weight_dtype: str, kv_cache_dtype: str) -> str:
    """Type of the KV cache: where it is "auto", the one that the checkpoint asks for.

    Parameters
    ----------
    model : ModelShape
        Its checkpoint may be calibrated for one.
    engine : EngineSettings
        vLLM from v0.14 on and SGLang follow the checkpoint.
    weight_dtype : str
        With another scheme than the checkpoint's own there is no calibration.
    kv_cache_dtype : str
        Kept unless it is "auto".

    Returns
    -------
    str
        A name that `kv_bits` knows.
    """
    edition = edition_of(engine)
    follows = edition.family == "sglang" or (edition.family == "vllm" and edition.since(KV_OF_CHECKPOINT))
    if kv_cache_dtype == "auto" and follows and weight_dtype in ("auto", model.quantization):
        return model.kv_cache_quantization or "auto"
    return kv_cache_dtype


def is_large(gpu: Gpu) -> bool:
    """Whether vLLM counts a GPU as large: 70 GiB and more, the A100 excepted."""
    return gpu.memory_gib >= LARGE_GPU_GIB and "a100" not in gpu.name.lower()


def _batch_defaults(edition: Edition, gpu: Gpu, parallelism: Parallelism, *, offline: bool) -> tuple[int, int]:
    if edition.family == "vllm":
        if edition.is_v0:
            return 256, 2048
        large = is_large(gpu) and not (edition.since(SMALL_GB10) and "gb10" in gpu.name.lower())
        if edition.number <= HOPPER_BY_NAME:
            large = any(name in gpu.name.lower() for name in ("h100", "h200"))
        if large and edition.since(LARGEST_BATCH) and gpu.memory_gib >= LARGEST_GPU_GIB:
            return 1024, 16_384
        if large:
            return 1024, 16_384 if offline else 8192
        return 256, 8192 if offline else 2048
    if edition.family == "sglang":
        return sglang_sequences(gpu, parallelism), sglang_limits(edition, gpu, parallelism)[0]
    if edition.family == "trtllm":
        return 2048 if edition.since(TRTLLM_2048_SEQUENCES) else 256, 8192
    return {"tgi": (128, 4096), "llamacpp": (1, 2048)}.get(edition.family, (256, 2048))


def default_utilization(
    edition: Edition, gpu: Gpu, parallelism: Parallelism, *, drafts: bool = False, vision_parameters: float = 0.0
) -> float:
    """Share of device memory that the engine takes when the user sets none.

    vLLM: 0.9, from v0.20 on 0.92. SGLang: `sglang_share`. TensorRT-LLM: 0.9 of what is free after loading. TGI: 0.95.
    """
    if edition.family == "vllm":
        return 0.92 if edition.since(UTILIZATION_092) else 0.9
    if edition.family == "sglang":
        return sglang_share(edition, gpu, parallelism, drafts=drafts, vision_parameters=vision_parameters)
    return {"trtllm": 0.9, "tgi": 0.95, "llamacpp": 1.0}.get(edition.family, 0.9)


def ollama_context_tokens(gpu: Gpu, limit: int) -> int:
    """Context that Ollama chooses by GPU memory: 4,096 tokens, 32,768 from 23 GiB, 262,144 from 47 GiB."""
    for least_gib, tokens in ((47, 262_144), (23, 32_768)):
        if gpu.memory_gib >= least_gib:
            return min(limit, tokens)
    return min(limit, 4096)
