"""Speculative decoding: the cost of drafting tokens, before the model verifies them in one step.

A separate draft model runs once per drafted token. Without one, the model's own draft layer runs: multi-token
prediction or EAGLE, one layer and the lm_head per token. Drafts from n-grams of the prompt would be free; they are not
assumed.
"""

from __future__ import annotations

import numpy as np

from planner.arrays import Floats
from planner.step_time.attention import attention_fields
from planner.step_time.layers import head_s, token_terms_s
from planner.step_time.overheads import overhead
from planner.step_time.rank_share import RankShare

BATCHES: Floats = np.array([1.0, 256.0])  # the cost is linear between these


def drafting_s(d: RankShare, sequences: Floats) -> Floats:
    """Time of drafting in one step. [s]

    Parameters
    ----------
    d : RankShare
        The replica; its engine sets the number of drafted tokens.
    sequences : array
        Sequences that draft.

    Returns
    -------
    array
        Seconds of all passes: matrices, lm_head and the fixed part of attention. The drafter's reads of its cache are
        not counted.
    """
    drafter = d.drafter
    if drafter is not None:
        terms = token_terms_s(drafter, sequences, prompt=False)
        fields = attention_fields(drafter)
        fixed, head = fields["attention_base_s"] + fields["window_base_s"], head_s(drafter, sequences)
    else:
        last = d.model.layer_counts()[-1][0]
        terms = token_terms_s(d, sequences, prompt=False, layers=((last, 1.0),))
        fields = attention_fields(d)
        fixed = (fields["attention_base_s"] + fields["window_base_s"]) / d.model.num_layers
        head = head_s(d, sequences)
    one = np.sum(list(terms.values()), axis=0) + head + fixed
    return np.asarray(d.engine.num_speculative_tokens * one, dtype=np.float64)


def drafting_line_s(d: RankShare) -> tuple[float, float]:
    """Time of drafting as a fixed part and a part per sequence. [s]

    Weights are read once for all sequences: the time hardly grows until compute binds.
    """
    if not d.engine.num_speculative_tokens:
        return 0.0, 0.0
    few, many = drafting_s(d, BATCHES)
    slope = max(0.0, float(many - few) / float(BATCHES[1] - BATCHES[0]))
    name, version = d.engine.family, d.engine.version
    host_us = verified_us = 0.0
    if not d.kernels_only:
        drafts = d.engine.num_speculative_tokens
        host_us = overhead(name, version, "draft_step_us") + drafts * overhead(name, version, "draft_us")
        verified_us = (drafts + 1) * overhead(name, version, "draft_us_per_token")
    return float(few) - slope * float(BATCHES[0]) + host_us * 1e-6, slope + verified_us * 1e-6
