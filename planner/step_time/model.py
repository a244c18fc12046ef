"""Step times of one replica, from its kernels: the one place that callers ask."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from planner.inputs import EngineSettings, Gpu, Parallelism
from planner.memory import captured_sizes
from planner.model import ModelShape
from planner.step_time.build import build_table, graph_size
from planner.step_time.drafting import drafting_line_s
from planner.step_time.layers import TOKEN_TERMS, head_s, token_terms_s
from planner.step_time.rank_share import RankShare
from planner.step_time.step_table import StepTimeTable, StepWork


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
    kernels_only: bool = False,
    draft_model: ModelShape | None = None,
    draft_weight_dtype: str = "auto",
) -> StepTimeTable:
    """Build the step times of one replica.

    Parameters
    ----------
    model, gpu, engine, parallelism
        The deployment. Under attention data parallelism token counts are those of all its ranks.
    weight_dtype, kv_cache_dtype : str
        Schemes of `planner.model`; "auto" is what the checkpoint holds.
    max_tokens : int
        Most tokens of one step.
    kernels_only : bool
        Without sampling, launches and host time, for comparison with kernel measurements.
    draft_model : ModelShape, optional
        Separate model that drafts tokens when the engine speculates; without one a layer of the model's own.
    draft_weight_dtype : str
        Scheme of its weights.

    Returns
    -------
    StepTimeTable
        Seconds, for any batch composition, with the error of its class.

    Raises
    ------
    InvalidInput
        When a scheme does not exist.
    """
    deployment = RankShare(
        model=model,
        gpu=gpu,
        engine=engine,
        parallelism=parallelism,
        weight_dtype=weight_dtype,
        kv_cache_dtype=kv_cache_dtype,
        kernels_only=kernels_only,
        draft_model=draft_model,
        draft_weight_dtype=draft_weight_dtype,
    )
    return build_table(deployment, max_tokens)


def explain_step(
    model: ModelShape,
    gpu: Gpu,
    engine: EngineSettings,
    parallelism: Parallelism,
    work: StepWork,
    *,
    weight_dtype: str = "auto",
    kv_cache_dtype: str = "auto",
    max_tokens: int = 16384,
    kernels_only: bool = False,
    draft_model: ModelShape | None = None,
    draft_weight_dtype: str = "auto",
) -> dict[str, float]:
    """Split the time of one step into its causes.

    Parameters
    ----------
    model, gpu, engine, parallelism
        The deployment.
    work : StepWork
        What the step computes.
    weight_dtype, kv_cache_dtype : str
        Schemes of `planner.model`.
    max_tokens, kernels_only, draft_model, draft_weight_dtype
        As given to `step_time_table`.

    Returns
    -------
    dict of str to float
        Milliseconds of weights_read, gemm_compute, expert_compute, elementwise_and_launch, collectives,
        state_update, pipeline_hops, prompt_launches, lm_head_and_sampling, decode_attention, prefill_attention,
        drafting and host (the part that is not hidden). Their sum is the table's step time.
    """
    table = step_time_table(
        model,
        gpu,
        engine,
        parallelism,
        weight_dtype=weight_dtype,
        kv_cache_dtype=kv_cache_dtype,
        max_tokens=max_tokens,
        kernels_only=kernels_only,
        draft_model=draft_model,
        draft_weight_dtype=draft_weight_dtype,
    )
    deployment = RankShare(
        model=model,
        gpu=gpu,
        engine=engine,
        parallelism=parallelism,
        weight_dtype=weight_dtype,
        kv_cache_dtype=kv_cache_dtype,
        kernels_only=kernels_only,
        draft_model=draft_model,
        draft_weight_dtype=draft_weight_dtype,
    )
    whole = table.terms_s(work)
    mixed = bool(work.chunks)
    terms = {name: 0.0 for name in TOKEN_TERMS}
    head = whole["head"]
    if work.num_tokens:
        tokens = np.array([float(work.num_tokens)])
        if not mixed:
            tokens = graph_size(tokens, captured_sizes(engine, gpu, parallelism))
        terms = {name: float(value[0]) for name, value in token_terms_s(deployment, tokens, prompt=mixed).items()}
        head = head if mixed else float(head_s(deployment, tokens)[0])
    # What the table's array holds beyond: prompt steps launch kernels one by one, attention kernels' fixed times.
    launches = whole["linear"] + whole["head"] - head - sum(terms.values())
    base, slope = drafting_line_s(deployment)
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
