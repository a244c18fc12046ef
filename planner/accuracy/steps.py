"""Predictions of published kernel step times: one prefill or decode step per row."""

from __future__ import annotations

from typing import Any

import pandas as pd

from planner.accuracy.names import checkpoint_shape, find_gpu, find_model
from planner.catalog.gpu_catalog import get_gpu
from planner.engine import EngineSettings
from planner.errors import InvalidInput, PlannerError
from planner.hardware import Gpu, Parallelism
from planner.model import ModelShape
from planner.step_time import PrefillChunk, StepTimeTable, StepWork
from planner.step_time_model import explain_step, step_time_table

_DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "fp8_static": "fp8",
    "fp8_ootb": "fp8",
    "int8_wo": "gptq_int8",
    "int8_sq": "int8",
    "int4_wo": "int4_g128",
    "w4afp8": "int4_g128",
    "w4a16_mxfp4": "mxfp4",
    "w4a8_mxfp4_mxfp8": "mxfp4",
    "w4a8_nvfp4_fp8": "nvfp4",
}


def predict(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, str]]:
    """Predict the step time of every row.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns of a kernel step-time file: model, gpu, engine, engine_version, tp, weight_dtype, moe_dtype,
        kv_dtype, moe_tp, moe_ep, phase, batch, isl, ctx. Kernels only: the rows hold no host time.

    Returns
    -------
    pandas.DataFrame
        `id` and `pred_step_ms`, empty where skipped. [ms]
    dict of str to str
        Why a row was skipped, by id.
    """
    predicted: list[float | None] = []
    skips: dict[str, str] = {}
    for record in frame.to_dict("records"):
        row = {str(name): value for name, value in record.items()}
        try:
            predicted.append(1e3 * step_s(row))
        except (PlannerError, KeyError, TypeError, ValueError) as error:
            predicted.append(None)
            skips[str(row.get("id"))] = str(error)
    ids = frame["id"] if "id" in frame else pd.Series(range(len(frame)))
    return pd.DataFrame({"id": ids.to_numpy(), "pred_step_ms": predicted}), skips


def step_s(row: dict[str, Any]) -> float:
    """Predict one row, without host time. [s]"""
    terms = _table(row).terms_s(work_of(row))
    return sum(seconds for name, seconds in terms.items() if name != "host")


def work_of(row: dict[str, Any]) -> StepWork:
    """Read what the step of a row computes."""
    batch = int(float(row["batch"]))
    if row["phase"] == "prefill":
        chunk = PrefillChunk(num_tokens=int(float(row["isl"])))
        return StepWork(chunks=(chunk,) * batch, num_logit_rows=batch)
    context = int(float(row["ctx"]))
    window = min(context, _table(row).window_tokens or context)
    return StepWork(num_decodes=batch, kv_tokens=batch * context, window_kv_tokens=batch * window, num_logit_rows=batch)


def explain(row: dict[str, Any]) -> dict[str, float]:
    """Split the prediction of one row into its terms. [ms]"""
    where = _deployment(row)
    weights, cache = weight_dtype_of(row), _kv_dtype(row)
    return explain_step(*where, work_of(row), weight_dtype=weights, kv_cache_dtype=cache, kernels_only=True)


def _table(row: dict[str, Any]) -> StepTimeTable:
    where = _deployment(row)
    return step_time_table(*where, weight_dtype=weight_dtype_of(row), kv_cache_dtype=_kv_dtype(row), kernels_only=True)


def _kv_dtype(row: dict[str, Any]) -> str:
    return _DTYPES.get(row["kv_dtype"], row["kv_dtype"])


def _deployment(row: dict[str, Any]) -> tuple[ModelShape, Gpu, EngineSettings, Parallelism]:
    version = row.get("engine_version")
    engine = EngineSettings(
        name=row["engine"], family=row["engine"], version=version if isinstance(version, str) else ""
    )
    return (
        model_of(row["model"], weight_dtype_of(row)),
        get_gpu(find_gpu(row["gpu"]) or row["gpu"]),
        engine,
        Parallelism(tensor_parallel_size=int(float(row["tp"])), expert_parallel=float(row.get("moe_ep") or 1) > 1),
    )


def model_of(name: str, weight_dtype: str) -> ModelShape:
    """Find the shape of a published model name."""
    known = find_model(name)
    if known is None:
        raise InvalidInput("model", name, "a model whose shape the catalog has")
    return checkpoint_shape(known, weight_dtype)


def weight_dtype_of(row: dict[str, Any]) -> str:
    """Scheme of a row: experts quantised alone name the checkpoint's own scheme."""
    dense, experts = row["weight_dtype"], row.get("moe_dtype")
    if isinstance(experts, str) and experts and experts != dense:
        return _DTYPES.get(experts, experts)
    return _DTYPES.get(dense, dense)
