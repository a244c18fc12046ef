"""What the engine's start-up log will say: weights, activations, KV cache, and whether it starts at all.

In: model, GPU, engine settings, parallelism. Out: a `MemoryPlan` with its formulas, its limits and its remedies.

edition        which version's arithmetic
defaults       limits that the engine resolves from the device
shards         weights per pipeline stage and GPU; expert_padding what 4-bit kernels add
kv_layout      blocks, groups, windows, states; compressed (DeepSeek-V4), packed (Qwen4), reserved (llama.cpp)
runtime        activation peak, buffers
cuda_graphs    which batch sizes are captured, and their memory
ranks          budget rule per engine family, binding rank
verdict        does it start, the longest context, the logged size
explain        formulas with values, remedies
sizing         `plan_memory`
"""

from planner.memory.cuda_graphs import captured_sizes
from planner.memory.defaults import kv_cache_type, ollama_context_tokens
from planner.memory.explain import FEWER_SEQUENCES
from planner.memory.kv_layout import kv_bytes_for
from planner.memory.memory_plan import Formula, MemoryPlan
from planner.memory.runtime import DRIVER_RESERVE_BYTES, DRIVER_RESERVE_SHARE, visible_memory_bytes
from planner.memory.sizing import plan_memory
from planner.memory.verdict import (
    OOM,
    OOM_CAPTURE,
    PARTLY_ON_CPU,
    REFUSED_DIVISION,
    REFUSED_FREE_MEMORY,
    REFUSED_LENGTH,
    REFUSED_NO_BLOCKS,
    REFUSED_STATE_CACHE,
    REFUSED_STATES,
    REFUSED_STEP,
)

__all__ = [
    "DRIVER_RESERVE_BYTES",
    "DRIVER_RESERVE_SHARE",
    "FEWER_SEQUENCES",
    "OOM",
    "OOM_CAPTURE",
    "PARTLY_ON_CPU",
    "REFUSED_DIVISION",
    "REFUSED_FREE_MEMORY",
    "REFUSED_LENGTH",
    "REFUSED_NO_BLOCKS",
    "REFUSED_STATES",
    "REFUSED_STATE_CACHE",
    "REFUSED_STEP",
    "Formula",
    "MemoryPlan",
    "captured_sizes",
    "kv_bytes_for",
    "kv_cache_type",
    "ollama_context_tokens",
    "plan_memory",
    "visible_memory_bytes",
]
