"""What vLLM's default of tokens per step, which grows with the GPU's memory, takes from the KV cache."""

from __future__ import annotations

import dataclasses

from planner.memory.defaults import LARGE_GPU_GIB, LARGEST_GPU_GIB
from planner.memory.demand import Demand
from planner.memory.verdict import Verdict, logged_kv_tokens, start_verdict

#: tokens a step by default: those of smaller GPUs, their sequences where they have fewer, and what they stay below
SMALLER: dict[int, tuple[int, int | None, float]] = {
    16_384: (8192, None, LARGEST_GPU_GIB),
    8192: (2048, 256, LARGE_GPU_GIB),
}
WORTH_SAYING = 1.05  # times as many tokens in the cache


def budget_note(demand: Demand, verdict: Verdict, kv_tokens: int) -> str:
    """Say where the default of a smaller GPU would hold 5 % more KV cache or more; empty elsewhere.

    Activations grow with max_num_batched_tokens, and windowed layers keep the tokens of every step in flight: at the
    thresholds of `EngineArgs.get_batch_defaults` more memory can hold less cache.

    Parameters
    ----------
    demand, verdict
        What is planned, and whether it starts.
    kv_tokens : int
        What the cache holds. [tokens]
    """
    engine, tokens = demand.engine, verdict.resolved.max_num_batched_tokens
    by_default = engine.max_num_batched_tokens is None and engine.enable_chunked_prefill
    if engine.family != "vllm" or not by_default or engine.is_v0 or tokens not in SMALLER or not verdict.starts:
        return ""
    fewer, sequences, from_gib = SMALLER[tokens]
    if demand.gpu.memory_gib < from_gib:  # the default of another cause: vLLM's LLM class, an image
        return ""
    sequences = sequences if engine.max_num_seqs is None else None
    small = dataclasses.replace(
        engine, max_num_batched_tokens=fewer, max_num_seqs=engine.max_num_seqs if sequences is None else sequences
    )
    other = start_verdict(dataclasses.replace(demand, engine=small), find_longest=False)
    held = logged_kv_tokens(other, demand.max_model_len, small) if other.starts else 0
    if held < WORTH_SAYING * kv_tokens:
        return ""
    flags = f"--max-num-batched-tokens {fewer}" + (f" --max-num-seqs {sequences}" if sequences else "")
    return (
        f"vLLM computes up to {tokens:,} tokens a step on GPUs with {from_gib:.0f} GiB and more, {fewer:,} on smaller "
        f"ones, and keeps memory for them. With {flags} the KV cache holds {held:,} tokens instead of {kv_tokens:,}; "
        "long prompts then take more steps."
    )
