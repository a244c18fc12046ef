"""The values that a plan is made of: GPU, engine settings, traffic and limits, each checked when it is made.

In: figures from the catalog or a user. Out: frozen `Gpu`, `EngineSettings`, `Traffic`, `ServiceLevel`, `Limits`.
"""

from planner.inputs.engine import (
    V1_DEFAULT,
    Batching,
    EngineSettings,
    KvReservation,
    OnMemoryShortage,
    StepOrder,
)
from planner.inputs.engine_version import NEWEST, Release, check_version, first_of, release_of
from planner.inputs.hardware import Gpu, Parallelism
from planner.inputs.limits import Limits
from planner.inputs.printed import PrintedMemory
from planner.inputs.scales import AS_PREDICTED, StepScales
from planner.inputs.traffic import ArrivalKind, Arrivals, LengthKind, Lengths, ServiceLevel, Traffic

__all__ = [
    "AS_PREDICTED",
    "NEWEST",
    "V1_DEFAULT",
    "ArrivalKind",
    "Arrivals",
    "Batching",
    "EngineSettings",
    "Gpu",
    "KvReservation",
    "LengthKind",
    "Lengths",
    "Limits",
    "OnMemoryShortage",
    "Parallelism",
    "PrintedMemory",
    "Release",
    "ServiceLevel",
    "StepOrder",
    "StepScales",
    "Traffic",
    "check_version",
    "first_of",
    "release_of",
]
