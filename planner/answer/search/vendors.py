"""Deployments that vendors recommend, found among the candidates, and why another one is cheaper."""

from __future__ import annotations

from collections.abc import Sequence

from planner.answer.planning import size
from planner.answer.search.outcome import MEETS, MISSES, Candidate
from planner.answer.search.space import Deployment
from planner.answer.search.summary import split_in_words
from planner.catalog import Recommended, alike_formats, get_model, recommended_deployments
from planner.model import resolve_scheme
from planner.scenario import CONFIG, CUSTOM, Scenario
from planner.units import GIB, counted, format_number, format_usd

MUCH_MORE = 1.5  # times the load: from here on a deployment is larger than this traffic needs


def recommended_for(scenario: Scenario) -> tuple[Recommended, ...]:
    """What vendors recommend for the scenario's model; nothing for a model that the user described."""
    return () if scenario.model in (CONFIG, CUSTOM) else recommended_deployments(scenario.model)


def recommended_among(
    scenario: Scenario, recommended: Recommended, found: Sequence[Deployment]
) -> tuple[Deployment, ...]:
    """The candidates whose GPUs, weights and split are those that a vendor recommends, the simplest split first."""
    shape, asked = scenario.published_shape, get_model(recommended.model).quantization

    def same_weights(weight_dtype: str) -> bool:
        scheme = resolve_scheme(shape, weight_dtype)
        return scheme.is_native if not asked else alike_formats(scheme.name, asked)

    alike = [
        item
        for item in found
        if item.choice.name == recommended.gpu
        and item.gpus_per_replica == recommended.gpus
        and not item.is_tuned
        and recommended.splits_as(item.changes)
        and same_weights(item.changes["weight_dtype"])
    ]
    return tuple(sorted(alike, key=lambda item: _complexity(scenario, item)))


def _complexity(scenario: Scenario, item: Deployment) -> tuple[int, int, bool, bool]:
    split = item.changes
    other_cache = split["kv_cache_dtype"] != scenario.kv_cache_dtype
    ranks = split["attention_data_parallel_size"]
    return split["pipeline_parallel_size"], ranks, split["expert_parallel"], other_cache


def advice(recommended: Recommended, theirs: Candidate, ours: Candidate) -> str:
    """What a vendor recommends, and why the cheapest deployment costs less for this traffic.

    Parameters
    ----------
    recommended : Recommended
        What the source says.
    theirs, ours : Candidate
        Its own plan for this traffic, and the cheapest one that meets the targets.

    Returns
    -------
    str
        Reasons are computed from both plans: context, load, bytes of the weights, number and price of the GPUs.
    """
    split = split_in_words(theirs.scenario)
    named = f"{recommended.gpus} × {recommended.gpu}" + (f" ({split})" if split else "")
    opening = f"{recommended.by} {_verb(recommended.by)} {named} for {recommended.model}"
    if theirs.status != MEETS:
        what = "misses the targets" if theirs.status == MISSES else theirs.status
        return f"{opening}; for this traffic it {what}: {theirs.reason.rstrip('.')}."
    if theirs.key <= ours.key:
        return f"{opening}, which is the cheapest here too."
    money = f"{format_usd(theirs.usd_per_month or 0.0)} a month with {counted(theirs.num_gpus or 0, 'GPU')}"
    why = "; ".join(_reasons(recommended, theirs, ours))
    return f"{opening}: {money}. The cheapest deployment costs less because {why}."


def _verb(by: str) -> str:
    return "recommend" if by.endswith("recipes") else "recommends"


def _reasons(recommended: Recommended, theirs: Candidate, ours: Candidate) -> list[str]:
    scenario, found = ours.scenario, []
    if (recommended.max_model_len or 0) > scenario.max_model_len:
        found.append(
            f"theirs is for contexts of {recommended.max_model_len:,} tokens, and this plan has "
            f"{scenario.max_model_len:,}"
        )
    if scenario.is_open_loop and theirs.slo_rate_rps and theirs.num_replicas:
        most = theirs.slo_rate_rps * theirs.num_replicas
        if most >= MUCH_MORE * scenario.peak_rate_rps:
            held, arrive = format_number(most), format_number(scenario.peak_rate_rps)
            found.append(f"theirs meets the targets up to {held} req/s, and {arrive} req/s arrive")
    own, other = _weights_gib(ours.scenario), _weights_gib(theirs.scenario)
    if own < 0.9 * other:
        found.append(f"its weights take {format_number(own)} GiB instead of {format_number(other)} GiB")
    if (ours.num_gpus or 0) < (theirs.num_gpus or 0):
        found.append(f"{counted(ours.num_gpus or 0, 'GPU')} suffice{'s' if ours.num_gpus == 1 else ''}")
    if (ours.usd_per_gpu_hour or 0.0) < (theirs.usd_per_gpu_hour or 0.0):
        price, instead = format_usd(ours.usd_per_gpu_hour or 0.0), format_usd(theirs.usd_per_gpu_hour or 0.0)
        found.append(f"an hour of {ours.scenario.gpu} costs {price} instead of {instead}")
    return found


def _weights_gib(scenario: Scenario) -> float:
    """Weights of one replica over all its GPUs, as its fullest GPU holds them. [GiB]"""
    return size(scenario, explain=False).memory.weights_bytes * scenario.parallelism.gpus_per_replica / GIB
