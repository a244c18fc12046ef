"""Predict what published start-up logs say, row by row."""

from __future__ import annotations

import dataclasses

import pandas as pd

from planner.accuracy.cells import reason_of
from planner.accuracy.memory_rows import MemoryCase, read_case
from planner.inputs import EngineSettings
from planner.memory import FEWER_SEQUENCES, REFUSED_NO_BLOCKS, REFUSED_STATES, REFUSED_STEP, MemoryPlan, plan_memory
from planner.units import GIB

COLUMNS = (
    "pred_weights_gib_per_gpu",
    "pred_activation_peak_gib",
    "pred_non_torch_gib",
    "pred_cuda_graph_gib",
    "pred_available_kv_gib",
    "pred_kv_tokens",
    "pred_max_concurrency",
    "pred_est_max_model_len",
    "pred_outcome",
)


def predict(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[int, str]]:
    """Predict every row of a memory file from its inputs.

    Parameters
    ----------
    frame : DataFrame
        Columns as in memory_cases.csv; what the engines printed is not read.

    Returns
    -------
    DataFrame
        `id` and the `pred_` columns of every row; blank where a row gives too little.
    dict of int to str
        Reason by row number (from 0) for rows of which nothing is predicted.
    """
    lines: list[dict[str, object]] = []
    skipped: dict[int, str] = {}
    for number, record in enumerate(frame.astype(object).fillna("").astype(str).to_dict("records")):
        row = {str(key): value for key, value in record.items()}
        lines.append({"id": row.get("id", str(number))})
        try:
            lines[-1] |= predicted(read_case(row))
        except Exception as error:  # whatever a foreign row holds, it must not cost the other rows
            skipped[number] = reason_of(error)
    return pd.DataFrame(lines, columns=["id", *COLUMNS]), skipped


def predicted(case: MemoryCase) -> dict[str, object]:
    """Predicted columns of one case.

    A row that leaves a limit open had one that the engine allows, where it refuses its own default with the number in
    the message: max_num_seqs of hybrids (or what drafting keeps for it), steps smaller than an image. Rows of such
    refusals give the limit.
    """
    plan = _plan(case, case.engine)
    if plan.outcome == REFUSED_STATES and case.engine.max_num_seqs is None and plan.num_kv_blocks:
        plan = _plan(case, dataclasses.replace(case.engine, max_num_seqs=plan.num_kv_blocks))
    if plan.outcome == REFUSED_NO_BLOCKS and case.engine.max_num_seqs is None:
        plan = _with_fewer_drafting(case, plan)
    if plan.outcome == REFUSED_STEP and case.engine.max_num_batched_tokens is None:
        plan = _plan(case, dataclasses.replace(case.engine, max_num_batched_tokens=case.model.image_tokens))
    values: dict[str, object] = {
        "pred_weights_gib_per_gpu": plan.weights_bytes / GIB,
        "pred_activation_peak_gib": plan.activation_bytes / GIB,
        "pred_non_torch_gib": plan.non_torch_bytes / GIB,
        "pred_cuda_graph_gib": plan.cuda_graph_bytes / GIB,
        "pred_outcome": plan.outcome,
        # engines print it only when they refuse the length; it is worth knowing before, too
        "pred_est_max_model_len": min(plan.held_length_tokens, case.max_model_len) or None,
    }
    if case.gpu_known:
        values |= _pool_columns(plan)
    return values


def _with_fewer_drafting(case: MemoryCase, plan: MemoryPlan) -> MemoryPlan:
    """The plan with the most requests for which SGLang can keep drafted states; as it was where none help."""
    hybrid = any(layer.mixer.is_state for layer in case.model.layer_kinds)
    if case.engine.family == "sglang" and case.engine.num_speculative_tokens and hybrid:
        for seqs in FEWER_SEQUENCES:
            other = _plan(case, dataclasses.replace(case.engine, max_num_seqs=seqs))
            if other.starts:
                return other
    return plan


def _plan(case: MemoryCase, engine: EngineSettings) -> MemoryPlan:
    return plan_memory(
        case.model,
        case.gpu,
        engine,
        case.parallelism,
        max_model_len=case.max_model_len,
        weight_dtype=case.weight_dtype,
        kv_cache_dtype=case.kv_cache_dtype,
        draft_model=case.draft_model,
        occupied_bytes=case.occupied_bytes,
        explain=False,
    )


def _pool_columns(plan: MemoryPlan) -> dict[str, object]:
    return {
        "pred_available_kv_gib": plan.kv_pool_bytes / GIB,
        "pred_kv_tokens": plan.kv_tokens,
        "pred_max_concurrency": plan.max_concurrency,
    }
