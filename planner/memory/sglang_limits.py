"""SGLang's defaults: its share of a GPU's memory, and how much it computes at once.

Source: python/sglang/srt/server_args.py, whose rule changed twice. Up to 0.4.5 the share follows the number of ranks;
up to 0.5.3 it leaves a reserve by class of device; from 0.5.4 on the reserve is summed up by purpose (#10975).
"""

from __future__ import annotations

from planner.inputs import Gpu, Parallelism
from planner.memory.edition import Edition

BY_DEVICE_CLASS = (0, 4, 6)
BY_PURPOSE = (0, 5, 4)
SHARE_BY_RANKS = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (1, 0.88))
#: device memory below [GB], reserve [GiB] and reserve per rank [GiB]
RESERVE_BY_CLASS = ((35, 2.8, 0.1), (90, 9.5, 0.5), (160, 12.0, 0.5), (float("inf"), 32.0, 0.0))
DRAFT_RESERVE_GIB = 2.0
LARGE_DEVICE_GIB, LARGE_DEVICE_RESERVE_GIB = 60.0, 10.0
VISION_SHARE = 0.95
VISION_BASELINE_PARAMETERS = 302e6  # ViT-L/14: 24 layers of 12 × 1,024²
#: device memory below [GB], prefill chunk [tokens], largest graph batch with fewer than 4 ranks and with 4 or more
LIMITS = ((20, 2048, 8, 8), (35, 2048, 24, 80), (60, 4096, 32, 160), (160, 8192, 256, 512), (1e9, 16_384, 512, 512))
LIMITS_BEFORE = ((25, 2048, 8, 8), (1e9, 8192, 160, 160))
LIMITS_BY_CLASS = ((35, 2048, 8, 8), (90, 8192, 160, 160), (160, 8192, 256, 256), (1e9, 16_384, 512, 512))


def sglang_ranks(parallelism: Parallelism) -> int:
    """SGLang's tensor-parallel size, which includes the ranks of data-parallel attention."""
    return parallelism.tensor_parallel_size * parallelism.attention_data_parallel_size


def sglang_limits(edition: Edition, gpu: Gpu, parallelism: Parallelism) -> tuple[int, int]:
    """Prefill chunk [tokens] and largest batch with a CUDA graph [sequences], by device memory."""
    table: tuple[tuple[float, int, int, int], ...] = LIMITS if edition.release >= BY_PURPOSE else LIMITS_BY_CLASS
    if edition.release < BY_DEVICE_CLASS:
        table = LIMITS_BEFORE
    _, chunk, narrow, wide = next(row for row in table if gpu.memory_gb < row[0])
    return chunk, narrow if sglang_ranks(parallelism) < 4 else wide


def sglang_sequences(gpu: Gpu, parallelism: Parallelism) -> int:
    """Sequences to plan for: twice the largest graph batch of the newest rule, which max_running_requests exceeds."""
    narrow, wide = next(row[2:] for row in LIMITS if gpu.memory_gb < row[0])
    return 2 * (narrow if sglang_ranks(parallelism) < 4 else wide)


def sglang_share(
    edition: Edition, gpu: Gpu, parallelism: Parallelism, *, drafts: bool = False, vision_parameters: float = 0.0
) -> float:
    """Share of the device for weights and KV cache (mem_fraction_static).

    Parameters
    ----------
    edition : Edition
        Decides which of the three rules holds.
    gpu : Gpu
        The reserve follows its memory.
    parallelism : Parallelism
        More ranks and data-parallel attention reserve more.
    drafts : bool
        Speculative decoding reserves 2 GiB more.
    vision_parameters : float
        A vision tower lowers the share, by its size relative to ViT-L.

    Returns
    -------
    float
        Above 0, at most 1.
    """
    ranks = sglang_ranks(parallelism) * parallelism.pipeline_parallel_size
    if edition.release < BY_DEVICE_CLASS:
        share = next(share for least, share in SHARE_BY_RANKS if ranks >= least)
    else:
        if edition.release >= BY_PURPOSE:
            reserved = _reserve_by_purpose(edition, gpu, parallelism, ranks)
        else:
            reserved = _reserve_by_class(gpu, parallelism, ranks)
        reserved += DRAFT_RESERVE_GIB if drafts else 0.0
        share = max(0.5, 1 - reserved / gpu.memory_gib)
    if vision_parameters:
        growth = vision_parameters / VISION_BASELINE_PARAMETERS - 1
        share *= VISION_SHARE * max(0.8, min(1.05, 1 - 0.1 * growth))
    return share


def _reserve_by_class(gpu: Gpu, parallelism: Parallelism, ranks: int) -> float:
    _, fixed, each = next(row for row in RESERVE_BY_CLASS if gpu.memory_gb < row[0])
    return fixed + each * ranks + (4.0 if parallelism.attention_data_parallel_size > 1 else 0.0)


def _reserve_by_purpose(edition: Edition, gpu: Gpu, parallelism: Parallelism, ranks: int) -> float:
    """0.5 GiB, 1.5 MiB per token of a chunk, 2 per sequence of the largest graph, 128 per rank. [GiB]

    Data-parallel attention adds 3 or 4.5 MiB per sequence of the largest graph and rank.
    """
    chunk, batch = sglang_limits(edition, gpu, parallelism)
    data = parallelism.attention_data_parallel_size
    reserved_mib = 512 + 1.5 * chunk + 2 * batch + 128 * ranks
    if data > 1:
        reserved_mib += (4.5 if batch > 300 else 3.0) * batch * data
    reserved = reserved_mib / 1024
    return max(reserved, LARGE_DEVICE_RESERVE_GIB) if gpu.memory_gib > LARGE_DEVICE_GIB else reserved
