"""States of hybrids in SGLang: a pool of slots beside the cache, and how many requests they let run.

Source: python/sglang/srt/model_executor/model_runner_kv_cache_mixin.py (handle_max_mamba_cache,
_calculate_mamba_ratio) and server_args.py (mamba_full_memory_ratio, max_mamba_cache_size).
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.inputs import EngineSettings, Parallelism
from planner.memory.kv_layout import state_bytes
from planner.model import Layer

SLOTS_PER_REQUEST = 3  # own, that of the matched prefix, and the one that is being kept
SLOTS_WHEN_DRAFTING = 4  # and a spare one (a log: 42 slots serve 10 requests)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePool:
    """Slots for states on one GPU, and what drafting keeps of them on the way."""

    slots: int
    slot_bytes: float
    drafting_bytes: float
    max_sequences: int

    @property
    def total_bytes(self) -> float:
        """All of it, on one GPU."""
        return self.slots * self.slot_bytes + self.drafting_bytes


def state_pool(
    layers: tuple[tuple[Layer, int], ...],
    engine: EngineSettings,
    *,
    max_num_seqs: int,
    parallelism: Parallelism,
    available_bytes: float,
) -> StatePool | None:
    """Size the pool of states.

    Parameters
    ----------
    layers : tuple of (Layer, int)
        Of one stage, those of a draft model included.
    engine : EngineSettings
        Its number of slots, or memory of states per memory of the cache; whether prefixes are kept; tokens drafted.
    max_num_seqs : int
        Running requests of a rank for which drafting keeps a state per drafted token and one for the last one sampled.
    parallelism : Parallelism
        Tensor parallelism divides the states; attention ranks share the slots that are told.
    available_bytes : float
        What the static fraction leaves beside the weights, on one GPU.

    Returns
    -------
    StatePool or None
        None when no layer keeps a state.
    """
    tp = parallelism.tensor_parallel_size
    slot = sum(count * state_bytes(x.mixer, tp) for x, count in layers if x.mixer.is_state)
    if not slot:
        return None
    drafted = engine.num_speculative_tokens
    drafting = slot * max_num_seqs * (drafted + 1) if drafted else 0.0
    rest = max(0.0, available_bytes - drafting)
    ratio = engine.mamba_full_memory_ratio
    slots = int(rest * ratio / (1 + ratio) // slot)
    if engine.max_state_slots is not None:
        slots = engine.max_state_slots // parallelism.attention_data_parallel_size
    elif not engine.enable_prefix_caching and engine.max_num_seqs is not None:
        slots = engine.max_num_seqs
    each = (SLOTS_WHEN_DRAFTING if drafted else SLOTS_PER_REQUEST) if engine.enable_prefix_caching else 1
    return StatePool(slots=slots, slot_bytes=slot, drafting_bytes=drafting, max_sequences=slots // each)
