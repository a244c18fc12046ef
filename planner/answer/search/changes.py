"""What single changes of a plan do to its GPUs and its cost, each as a plan of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass

from planner.answer.search.bounds import Budget
from planner.answer.search.kept import Finished, keep_plan, planned, recalled_plan
from planner.answer.search.outcome import MEETS, Candidate
from planner.answer.search.recommend import most_requests_of_a_plan
from planner.answer.search.space import SIZED_ANEW
from planner.errors import InvalidInput, PlannerError
from planner.memory import kv_cache_type
from planner.scenario import Scenario
from planner.units import counted, format_usd

Fields = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One changed input and what it does to the answer; `scenario` opens it as a plan."""

    label: str
    scenario: Scenario
    num_gpus: int | None
    usd_per_month: float | None
    text: str


def change_steps(
    scenario: Scenario, *, executor: Executor | None = None, budget: Budget = most_requests_of_a_plan
) -> Iterator[tuple[Change, ...]]:
    """What single changes of a plan do to its GPUs and cost: all that is known after each plan that was made.

    The changes: weights in FP8, KV cache in FP8, more and less tensor parallelism, more traffic, tighter and looser
    targets. Changes that the other inputs forbid are left out.

    Parameters
    ----------
    scenario : Scenario
        The plan; its number of replicas is found anew.
    executor : concurrent.futures.Executor, optional
        Where the changed plans are made; None: in this thread.
    budget : callable, optional
        Most requests that a plan of a scenario simulates for one figure.
    """
    base = scenario.replace(**SIZED_ANEW)
    varied = _varied(base)
    outcomes = _planned([base, *(item for _, item in varied)], executor, budget)
    before = next(outcomes)
    found: list[Change] = []
    for (label, item), after in zip(varied, outcomes, strict=True):
        if after is not None and before is not None:
            found.append(_change(label, item, before, after))
        yield tuple(found)


def _planned(scenarios: list[Scenario], executor: Executor | None, budget: Budget) -> Iterator[Candidate | None]:
    """The plan of each scenario in order; None where the other inputs turn out to forbid it."""
    known = [recalled_plan(item, budget) for item in scenarios]
    new = [item for item, row in zip(scenarios, known, strict=True) if row is None]
    futures: list[Future[Finished | None]] = []
    if executor is not None:
        futures = [executor.submit(_tried, item, budget) for item in new]
    made = (future.result() for future in futures) if executor is not None else (_tried(item, budget) for item in new)
    try:
        for row in known:
            found = next(made) if row is None else None
            yield row if found is None else keep_plan(found, budget)
    finally:
        for future in futures:
            future.cancel()


def _tried(scenario: Scenario, budget: Budget) -> Finished | None:
    try:
        return planned(scenario, budget)
    except PlannerError:
        return None


def _varied(scenario: Scenario) -> list[tuple[str, Scenario]]:
    """The scenarios that differ in one input, with what differs."""
    tries: list[tuple[str, Fields]] = [
        ("weights in FP8", {"weight_dtype": "fp8"}),
        ("KV cache in FP8", {} if _cache_is_fp8(scenario) else {"kv_cache_dtype": "fp8"}),
        ("twice the tensor parallelism", {"tensor_parallel_size": scenario.tensor_parallel_size * 2}),
        ("half the tensor parallelism", {"tensor_parallel_size": scenario.tensor_parallel_size // 2}),
        ("50 % more traffic", _more_traffic(scenario, 1.5)),
    ]
    for target in scenario.targets:
        tries.append((f"half the {target.name} target", {target.field: target.limit_s / 2}))
        tries.append((f"twice the {target.name} target", {target.field: target.limit_s * 2}))
    found = []
    for label, fields in tries:
        try:
            varied = scenario.replace(**fields)
        except InvalidInput:
            continue
        if varied != scenario:
            found.append((label, varied))
    return found


def _cache_is_fp8(scenario: Scenario) -> bool:
    """Whether this plan's KV cache is fp8 already."""
    model, engine = scenario.model_shape, scenario.engine_settings
    return kv_cache_type(model, engine, scenario.weight_dtype, scenario.kv_cache_dtype) == "fp8"


def _more_traffic(scenario: Scenario, factor: float) -> Fields:
    if scenario.arrivals == "closed":
        return {"concurrent_users": math.ceil(scenario.concurrent_users * factor)}
    if scenario.arrivals == "once":
        return {"num_requests": math.ceil(scenario.num_requests * factor)}
    if scenario.demand == "users":
        return {"users": math.ceil(scenario.users * factor)}
    if scenario.demand == "daily":
        return {"requests_per_day": scenario.requests_per_day * factor}
    return {"rate_rps": scenario.rate_rps * factor}


def _change(label: str, varied: Scenario, before: Candidate, after: Candidate) -> Change:
    if after.status != MEETS or after.num_gpus is None:
        text = "does not start" if after.status == "does not start" else "no number of replicas meets the targets"
        return Change(label=label, scenario=varied, num_gpus=None, usd_per_month=None, text=text)
    settled = after.scenario
    if before.status != MEETS or before.num_gpus is None:
        text = f"meets the targets with {counted(after.num_gpus, 'GPU')}"
    else:
        text = _difference(before, after)
    return Change(label=label, scenario=settled, num_gpus=after.num_gpus, usd_per_month=after.usd_per_month, text=text)


def _difference(before: Candidate, after: Candidate) -> str:
    difference = (after.num_gpus or 0) - (before.num_gpus or 0)
    money = (after.usd_per_month or 0.0) - (before.usd_per_month or 0.0)
    costs_other = abs(money) > 0.5  # USD: less is rounding
    text = "as many GPUs" if costs_other else "no change"
    if difference:
        text = f"{'adds' if difference > 0 else 'saves'} {counted(abs(difference), 'GPU')}"
    if costs_other:
        text += f" ({'+' if money > 0 else '−'}{format_usd(abs(money))} a month)"
    return text
