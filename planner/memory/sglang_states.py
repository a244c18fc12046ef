"""Recurrent states of hybrid models in SGLang: a pool of slots beside the KV cache, which limits running requests.

Source: python/sglang/srt/model_executor/model_runner_kv_cache_mixin.py (handle_max_mamba_cache,
_calculate_mamba_ratio) and server_args.py (mamba_full_memory_ratio, max_mamba_cache_size).
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.inputs import EngineSettings, Parallelism
from planner.memory.edition import edition_of
from planner.memory.kv_layout import state_bytes
from planner.model import Layer

SLOTS_PER_REQUEST = 3  # its own state, that of the matched prefix, and the one that is being saved
SLOTS_WHEN_DRAFTING = 4  # and a spare one (a log: 42 slots serve 10 requests)
#: from 0.5.14 on a request has a buffer as well, two with overlapping batches (mamba_radix_cache_strategy auto is
#: extra_buffer in the wheels of 0.5.14 to 0.5.23, no_buffer up to 0.5.13)
BUFFERED = (0, 5, 14)
SLOTS_WITH_BUFFER, SLOTS_WITH_OVERLAP = 4, 5


def slots_per_request(engine: EngineSettings) -> int:
    """States that one running request holds."""
    if not engine.enable_prefix_caching:
        return 1
    if edition_of(engine).release >= BUFFERED:
        return SLOTS_WITH_OVERLAP if engine.async_scheduling else SLOTS_WITH_BUFFER
    return SLOTS_WHEN_DRAFTING if engine.num_speculative_tokens else SLOTS_PER_REQUEST


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePool:
    """Slots for states on one GPU, and the states that drafting keeps."""

    slots: int
    slot_bytes: float
    drafting_bytes: float
    max_sequences: int

    @property
    def total_bytes(self) -> float:
        """Slots and drafting together, on one GPU."""
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
        Layers of one stage, with those of a draft model.
    engine : EngineSettings
        Number of slots, or ratio of state memory to KV cache; whether prefixes are cached; tokens drafted.
    max_num_seqs : int
        Running requests of a rank. When drafting, each keeps a state per drafted token and one for the last sampled.
    parallelism : Parallelism
        Tensor parallelism divides the states; attention ranks share the number of slots that the user sets.
    available_bytes : float
        What the static fraction leaves after the weights, on one GPU.

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
    sequences = slots // slots_per_request(engine)
    return StatePool(slots=slots, slot_bytes=slot, drafting_bytes=drafting, max_sequences=sequences)
