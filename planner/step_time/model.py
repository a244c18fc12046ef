"""Step times of one replica, from its kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

import numpy as np

from planner.inputs import AS_PREDICTED, EngineSettings, Gpu
from planner.memory import captured_sizes
from planner.model import ModelShape, TensorGroup, weight_bits
from planner.step_time.build import build_table, graph_size
from planner.step_time.drafting import drafting_line_s
from planner.step_time.layers import TOKEN_TERMS, head_s, token_terms_s
from planner.step_time.overheads import scales_in_force
from planner.step_time.profile import evidence_class, peak_flops, runs_left_out
from planner.step_time.rank_share import RankShare, weight_kernel
from planner.step_time.step_table import StepTimeTable, StepWork


@lru_cache(maxsize=512)
def step_time_table(replica: RankShare, max_tokens: int = 16384) -> StepTimeTable:
    """Build the step times of one replica.

    Parameters
    ----------
    replica : RankShare
        Model, GPU, engine and settings. Under attention data parallelism token counts are those of all its ranks.
    max_tokens : int
        Most tokens of one step.

    Returns
    -------
    StepTimeTable
        Seconds, for any batch composition, with the error of its class.

    Raises
    ------
    InvalidInput
        When a scheme does not exist.
    """
    return build_table(replica, max_tokens)


@contextmanager
def scaled_overheads(scales: Mapping[tuple[str, str], float]) -> Iterator[None]:
    """Multiply serving overheads while the block runs, in new tables only.

    Parameters
    ----------
    scales : mapping
        (engine family, parameter of `catalog/serving_overheads.csv`) to factor.
    """
    step_time_table.cache_clear()
    try:
        with scales_in_force(scales):
            yield
    finally:
        step_time_table.cache_clear()


@contextmanager
def without_published_runs() -> Iterator[None]:
    """Ignore, in new tables while the block runs, what published runs taught about the kernels of GPU classes.

    What is left are kernel tables and data sheets: the prediction for a GPU on which nobody has published a run.
    """
    step_time_table.cache_clear()
    try:
        with runs_left_out():
            yield
    finally:
        step_time_table.cache_clear()


def kernel_evidence(model: ModelShape, gpu: Gpu, engine: EngineSettings, weight_dtype: str = "auto") -> str:
    """How near the measured kernels are to those of a deployment.

    Parameters
    ----------
    model, gpu, engine, weight_dtype
        As of a `RankShare`.

    Returns
    -------
    str
        One of `EVIDENCE`: measured on this GPU with this engine; on another GPU of the architecture, with another
        engine or for another type of weights; not measured on the architecture.
    """
    group, kind = (TensorGroup.EXPERT, "experts") if model.is_moe else (TensorGroup.MLP, "gemm")
    asked = weight_kernel(model, weight_dtype, weight_bits(model, weight_dtype, group))
    return evidence_class(gpu, engine.family, ((kind, peak_flops(gpu, asked)[1]),))


def explain_step(replica: RankShare, work: StepWork, max_tokens: int = 16384) -> dict[str, float]:
    """Split the time of one step into its causes.

    Parameters
    ----------
    replica, max_tokens
        As given to `step_time_table`.
    work : StepWork
        What the step computes.

    Returns
    -------
    dict of str to float
        Milliseconds of weights_read, gemm_compute, expert_compute, elementwise_and_launch, collectives,
        state_update, pipeline_hops, prompt_launches, lm_head_and_sampling, decode_attention, prefill_attention,
        drafting and host (the part that is not hidden). Their sum is the table's step time.
    """
    predicted = replace(replica, scales=AS_PREDICTED)
    explained = _explained(predicted, work, max_tokens)
    if predicted == replica:
        return explained
    before = step_time_table(predicted, max_tokens).terms_s(work)
    after = step_time_table(replica, max_tokens).terms_s(work)
    # What depends on tokens alone is scaled as a whole; the reading of weights hides behind what tokens add.
    factors = {
        "decode_attention": replica.scales.sequences,
        "drafting": replica.scales.sequences,
        "prefill_attention": replica.scales.prefill,
    }
    tokens_alone = (after["linear"] + after["head"]) / ((before["linear"] + before["head"]) or 1.0)
    return {name: ms * factors.get(name, tokens_alone) for name, ms in explained.items()} | {
        "host": 1e3 * after["host"]
    }


def _explained(replica: RankShare, work: StepWork, max_tokens: int) -> dict[str, float]:
    """The causes of a step as predicted, without factors. [ms]"""
    whole = step_time_table(replica, max_tokens).terms_s(work)
    mixed = bool(work.chunks)
    terms = {name: 0.0 for name in TOKEN_TERMS}
    head = whole["head"]
    if work.num_tokens:
        tokens = np.array([float(work.num_tokens)])
        if not mixed:
            tokens = graph_size(tokens, captured_sizes(replica.engine, replica.gpu, replica.parallelism))
        terms = {name: float(value[0]) for name, value in token_terms_s(replica, tokens, prompt=mixed).items()}
        head = head if mixed else float(head_s(replica, tokens)[0])
    # What remains of the table: launches of a prompt step's kernels, and fixed times of attention kernels.
    launches = whole["linear"] + whole["head"] - head - sum(terms.values())
    base, slope = drafting_line_s(replica)
    drafting = base + slope * work.num_decodes if work.num_decodes else 0.0
    terms |= {
        "prompt_launches": launches,
        "lm_head_and_sampling": head,
        "decode_attention": whole["decode_attention"] - drafting,
        "drafting": drafting,
        "prefill_attention": whole["prefill_attention"],
        "host": whole["host"],
    }
    return {name: 1e3 * seconds for name, seconds in terms.items()}
