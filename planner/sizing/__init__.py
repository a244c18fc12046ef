"""Memory of a replica: what fits, what the engine's start-up log will say, and what to change.

edition    which version's arithmetic
sglang_states states of hybrids in SGLang
sglang_limits what SGLang takes and computes at once
defaults   limits that the engine resolves from the device
expert_padding what the kernels of 4-bit experts add
shards     weights per pipeline stage and GPU
kv_groups  groups of layers that share a pool
compressed DeepSeek-V4
kv_layout  blocks, groups, windows, states
reserved   cache of engines that reserve every slot at start
runtime    activation peak, buffers, CUDA graphs
checks     divisions that an engine refuses
ranks      budget rule per engine family, binding rank
verdict    does it start, the longest context, the logged size
explain    formulas with values, remedies
plan       `plan_memory`
"""

from planner.sizing.defaults import kv_cache_type
from planner.sizing.kv_layout import kv_bytes_for
from planner.sizing.plan import plan_memory

__all__ = ["kv_bytes_for", "kv_cache_type", "plan_memory"]
