"""Predictions of published kernel step times: one prefill or decode step per row."""

from __future__ import annotations

from typing import Any

import pandas as pd

from planner.accuracy.cells import count_of, needed_number, number_of, reason_of, text_of
from planner.accuracy.names import find_engine_preset, find_gpu, find_model
from planner.accuracy.scoring import is_moe_name
from planner.catalog import checkpoint, get_engine, get_gpu, get_model
from planner.errors import InvalidInput
from planner.inputs import Parallelism
from planner.model import ModelShape
from planner.step_time import PrefillChunk, RankShare, StepTimeTable, StepWork, explain_step, step_time_table

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
LENGTH_OF = {"decode": "ctx", "prefill": "isl"}  # phases, and the length that each must state


def predict(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[int, str]]:
    """Predict the step time of every row.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns of a kernel step-time file: model, gpu, engine, engine_version, tp, weight_dtype, moe_dtype,
        kv_dtype, moe_tp, moe_ep, phase, batch, isl, ctx. Kernels only: the rows hold no host time.

    Returns
    -------
    pandas.DataFrame
        `id` and `pred_step_ms` of every row, blank where skipped. [ms]
    dict of int to str
        Why a row was skipped, by its number from 0.
    """
    predicted: list[float | None] = []
    skips: dict[int, str] = {}
    for number, record in enumerate(frame.to_dict("records")):
        row = {str(name): value for name, value in record.items()}
        try:
            predicted.append(1e3 * step_s(row))
        except Exception as error:  # one row that nobody foresaw must not stop the others
            predicted.append(None)
            skips[number] = reason_of(error)
    ids = frame["id"] if "id" in frame else pd.Series(range(len(frame)))
    return pd.DataFrame({"id": ids.to_numpy(), "pred_step_ms": pd.Series(predicted, dtype=float)}), skips


def step_s(row: dict[str, Any]) -> float:
    """Predict one row, without host time. [s]"""
    terms = _table(row).terms_s(work_of(row))
    return sum(seconds for name, seconds in terms.items() if name != "host")


def phase_of(row: dict[str, Any]) -> str:
    """Tell prefill from decode; a row without a phase is a decode step if it states a context, else a prefill.

    Raises
    ------
    InvalidInput
        When the row names another phase, or leaves it open.
    """
    stated = text_of(row, "phase").lower()
    if not stated:
        stated = next((phase for phase, column in LENGTH_OF.items() if number_of(row, column)), "")
    if stated not in LENGTH_OF:
        raise InvalidInput("phase", stated, "prefill or decode")
    return stated


def step_class(frame: pd.DataFrame) -> pd.Series:
    """Class of each row: dense or moe, and prefill or decode ("?" where the phase cannot be told)."""

    def phase(row: dict[Any, Any]) -> str:
        try:
            return phase_of(row)
        except InvalidInput:
            return "?"

    phases = pd.Series([phase(row) for row in frame.to_dict("records")], frame.index, dtype=object)
    return is_moe_name(frame["model"]).map({True: "moe", False: "dense"}).astype(object) + " " + phases


def work_of(row: dict[str, Any]) -> StepWork:
    """Read what the step of a row computes.

    Raises
    ------
    InvalidInput
        When its phase, batch, prompt or context is missing or one that no step can have.
    """
    phase = phase_of(row)
    batch, context = (int(needed_number(row, name)) for name in ("batch", LENGTH_OF[phase]))
    if phase == "prefill":
        return StepWork(chunks=(PrefillChunk(num_tokens=context),) * batch, num_logit_rows=batch)
    return _table(row).decode_work(batch, context)


def explain(row: dict[str, Any]) -> dict[str, float]:
    """Split the prediction of one row into its terms. [ms]"""
    return explain_step(_replica(row), work_of(row))


def _table(row: dict[str, Any]) -> StepTimeTable:
    return step_time_table(_replica(row))


def _kv_dtype(row: dict[str, Any]) -> str:
    stated = text_of(row, "kv_dtype") or "auto"
    return _DTYPES.get(stated, stated)


def _replica(row: dict[str, Any]) -> RankShare:
    gpu, weights = text_of(row, "gpu"), weight_dtype_of(row)
    return RankShare(
        model=model_of(text_of(row, "model"), weights),
        gpu=get_gpu(find_gpu(gpu) or gpu),
        engine=get_engine(find_engine_preset(text_of(row, "engine")), text_of(row, "engine_version")),
        parallelism=Parallelism(
            tensor_parallel_size=count_of(row, "tp") or 1,
            expert_parallel=(number_of(row, "moe_ep") or 1) > 1,
        ),
        weight_dtype=weights,
        kv_cache_dtype=_kv_dtype(row),
        kernels_only=True,
    )


def model_of(name: str, weight_dtype: str) -> ModelShape:
    """Find the shape of a published model name."""
    known = find_model(name)
    if known is None:
        raise InvalidInput("model", name, "a model whose shape the catalog has")
    return checkpoint(get_model(known), weight_dtype)


def weight_dtype_of(row: dict[str, Any]) -> str:
    """Weight scheme of a row: the checkpoint's own where only experts are quantised or nothing is stated."""
    dense, experts = text_of(row, "weight_dtype") or "auto", text_of(row, "moe_dtype")
    if experts and experts != dense:
        return _DTYPES.get(experts, experts)
    return _DTYPES.get(dense, dense)
