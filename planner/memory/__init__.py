"""What the engine's start-up log will say: weights, activations, KV cache, and whether the engine starts.

In: model, GPU, engine settings, parallelism. Out: a `MemoryPlan` with its formulas, its limits and its remedies.

edition        what changed with which version, and which engine does what
defaults       limits that the engine derives from the device when the user sets none
shards         weights per pipeline stage and GPU; expert_padding: what 4-bit kernels add
kv_layout      blocks, groups, windows, states; compressed (DeepSeek-V4), packed (Qwen4), reserved (llama.cpp)
runtime        activation peak, buffers; sparse_workspace: those of sparse latent attention
log_constants  constants that were read off start-up logs
cuda_graphs    which batch sizes are captured, and their memory
printed        what the engine's own log says, in place of the estimate
ranks          the budget rule of each engine family, and the GPU that binds
pool_range     between which sizes the KV pool lies, and whether that leaves the start in doubt
loading        copies of weights that are repacked once they are on the GPU
precision      which weights and caches an engine has kernels for on a GPU
verdict        whether it starts, the longest context, the KV cache size in the log
explain        formulas with values, and the changes that make an engine start
sizing         `plan_memory`
"""

from planner.memory.cuda_graphs import captured_sizes
from planner.memory.defaults import kv_cache_type, ollama_context_tokens
from planner.memory.log_constants import stored_constants, values_without_logs
from planner.memory.memory_plan import Formula, MemoryPlan, Remedy
from planner.memory.precision import native_schemes, running_scheme, weights_support
from planner.memory.printed import printed_note
from planner.memory.runtime import DRIVER_RESERVE_BYTES, DRIVER_RESERVE_SHARE, visible_memory_bytes
from planner.memory.sizing import plan_memory, with_log_constants
from planner.memory.verdict import (
    OOM,
    OOM_CAPTURE,
    OOM_HOST,
    OOM_SAMPLER,
    PARTLY_ON_CPU,
    REFUSED_DIVISION,
    REFUSED_FREE_MEMORY,
    REFUSED_LENGTH,
    REFUSED_NO_BLOCKS,
    REFUSED_PRECISION,
    REFUSED_STATE_CACHE,
    REFUSED_STATES,
    REFUSED_STEP,
)

__all__ = [
    "DRIVER_RESERVE_BYTES",
    "DRIVER_RESERVE_SHARE",
    "OOM",
    "OOM_CAPTURE",
    "OOM_HOST",
    "OOM_SAMPLER",
    "PARTLY_ON_CPU",
    "REFUSED_DIVISION",
    "REFUSED_FREE_MEMORY",
    "REFUSED_LENGTH",
    "REFUSED_NO_BLOCKS",
    "REFUSED_PRECISION",
    "REFUSED_STATES",
    "REFUSED_STATE_CACHE",
    "REFUSED_STEP",
    "Formula",
    "MemoryPlan",
    "Remedy",
    "captured_sizes",
    "kv_cache_type",
    "native_schemes",
    "ollama_context_tokens",
    "plan_memory",
    "printed_note",
    "running_scheme",
    "stored_constants",
    "values_without_logs",
    "visible_memory_bytes",
    "weights_support",
    "with_log_constants",
]
