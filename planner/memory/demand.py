"""What the memory of a deployment is asked about, and the engine limits that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

from planner.inputs import EngineSettings, Gpu, Parallelism, PrintedMemory
from planner.memory.defaults import Resolved, resolve
from planner.model import ModelShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """A deployment: everything that its memory depends on."""

    model: ModelShape
    gpu: Gpu
    engine: EngineSettings
    parallelism: Parallelism
    max_model_len: int
    weight_dtype: str = "auto"
    kv_cache_dtype: str = "auto"
    draft_model: ModelShape | None = None
    occupied_bytes: float = 0.0
    printed: PrintedMemory | None = None  # what the engine's log says, in place of the estimate


def limits_of(demand: Demand) -> Resolved:
    """Engine limits of this deployment, with every default filled in."""
    return resolve(
        demand.engine,
        demand.gpu,
        demand.parallelism,
        demand.max_model_len,
        vision_parameters=demand.model.vision_parameters,
        image_tokens=demand.model.image_tokens,
    )


def drafts_with_own_layers(demand: Demand) -> bool:
    """Whether multi-token-prediction layers are loaded: the model has them and no other model drafts."""
    own = demand.draft_model is None and demand.model.mtp_parameters > 0
    return own and demand.engine.num_speculative_tokens > 0
