"""Step times of one replica, from its kernels: the one place that callers ask."""

from __future__ import annotations

from functools import lru_cache

from planner.engine import EngineSettings
from planner.hardware import Gpu, Parallelism
from planner.model import ModelShape
from planner.step_time import StepTimeTable
from planner.step_time_kernels import kernel_step_time_table


@lru_cache(maxsize=512)
def step_time_table(
    model: ModelShape,
    gpu: Gpu,
    engine: EngineSettings,
    parallelism: Parallelism,
    *,
    weight_dtype: str = "auto",
    kv_cache_dtype: str = "auto",
    max_tokens: int = 16384,
) -> StepTimeTable:
    """Build the step times of one replica.

    Parameters
    ----------
    model, gpu, engine, parallelism
        The deployment.
    weight_dtype, kv_cache_dtype : str
        Schemes of `planner.quantization`; "auto" is what the checkpoint holds.
    max_tokens : int
        Most tokens of one step.

    Returns
    -------
    StepTimeTable
        Seconds, for any batch composition.
    """
    return kernel_step_time_table(
        model,
        gpu,
        engine,
        parallelism,
        weight_dtype=weight_dtype,
        kv_cache_dtype=kv_cache_dtype,
        max_tokens=max_tokens,
    )
