"""The search: bounds first, then whole plans, until no candidate that is left can be cheaper than the best.

Rounds of small tasks go to an executor; what a round does depends only on the results of the rounds before, so the
outcome is the same in any executor, with any number of workers.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor

from planner.answer.search.bounds import CONTRADICTS, DOES_NOT_START, MISSES_WHEN_IDLE, Budget
from planner.answer.search.outcome import EVIDENCE, MEETS, MISSES, Candidate, Search
from planner.answer.search.space import SIZED_ANEW, Choice, Deployment, choices, deployments, tuned
from planner.answer.search.state import CAPACITY_CHUNK, Batch, Key, Open, State
from planner.answer.search.summary import summary_of
from planner.answer.search.vendors import advice, recommended_among, recommended_for
from planner.catalog import Recommended
from planner.scenario import Scenario
from planner.service import MOST_REQUESTS

MEMORY_CHUNK = 64  # candidates of one task
ROUND = 24  # candidates whose bound a round improves
PLANS = 2  # whole plans of a round
TUNED, ALSO_TUNED = 4, 10  # leaders whose engine settings are varied: plans, and candidates with the least bounds
TIED, TIED_PLANS = 16, 2  # candidates that may cost as much as the best: tried, and planned whole
SHOWN_GPUS = 8  # further GPUs, each with its cheapest plan
FASTER = (2, 4)  # times the GPUs of a replica, of the best plan, to show what a shorter latency costs
ALIKE = 0.05  # latencies that differ by less are the same to a reader
RECOMMENDED = 8  # deployments that vendors recommend, planned whatever they cost: no model has more
CLOSEST = 4  # plans shown where nothing meets the targets


def most_requests_of_a_plan(scenario: Scenario) -> int:
    """The budget of `plan` itself."""
    return MOST_REQUESTS


def recommend(
    scenario: Scenario,
    *,
    gpus: Iterable[str] | None = None,
    weight_dtypes: Iterable[str] | None = None,
    executor: Executor | None = None,
    budget: Budget = most_requests_of_a_plan,
) -> Search:
    """The cheapest deployments that meet the targets, each with the figures of its own plan.

    Parameters
    ----------
    scenario : Scenario
        Model, traffic, targets, the kind of price, and the restrictions on GPUs.
    gpus : iterable of str, optional
        Catalog names; None: what the scenario's restrictions leave.
    weight_dtypes : iterable of str, optional
        Weight formats; None: those in which the model is published.
    executor : concurrent.futures.Executor, optional
        Where candidates are bounded and planned; None: in this thread. A ProcessPoolExecutor uses all cores, and Dask's
        `Client.get_executor()` a cluster. The outcome does not depend on it.
    budget : callable, optional
        Most requests that a plan of a scenario simulates for one figure; a function that a worker can import.

    Returns
    -------
    Search
        The cheapest of all, of each vendor and of each kind of evidence, the cheapest on further GPUs, and faster ones;
        those that cost no less and are no faster than another are left out.

    Raises
    ------
    InvalidInput
        When the restrictions leave no GPU.
    """
    steps = search_steps(scenario, gpus=gpus, weight_dtypes=weight_dtypes, executor=executor, budget=budget)
    return deque(steps, maxlen=1)[0]


def search_steps(
    scenario: Scenario,
    *,
    gpus: Iterable[str] | None = None,
    weight_dtypes: Iterable[str] | None = None,
    executor: Executor | None = None,
    budget: Budget = most_requests_of_a_plan,
) -> Iterator[Search]:
    """What `recommend` knows after each round, the last one finished; closing the iterator ends the search."""
    # Bounds are those of replicas that do both; separate prefill and decode are tried among the leaders.
    base = scenario.replace(deployment="aggregated", **SIZED_ANEW)
    chosen, left_out = choices(base, gpus)
    state = State(scenario=base, budget=budget, executor=executor, left_out=left_out)
    found = deployments(base, chosen, None if weight_dtypes is None else tuple(weight_dtypes))
    yield from _first_bounds(state, found)
    yield from _settle(state)
    leaders = [item.deployment for item in _leaders(state)]
    varied = [variant for leader in leaders for variant in tuned(base, leader)]
    if varied:
        yield from _first_bounds(state, tuple(varied))
        yield from _settle(state)
    yield from _compare_tied(state)
    for item in _worth_showing(state, chosen):
        yield from _plan_cheapest(state, item)
    yield from _plan_recommended(state)
    yield _told(state, finished=True)


def _first_bounds(state: State, found: tuple[Deployment, ...]) -> Iterator[Search]:
    """Memory and arithmetic of every candidate."""
    order = len(state.open)
    chunks = [found[at : at + MEMORY_CHUNK] for at in range(0, len(found), MEMORY_CHUNK)]
    batch = Batch(state)
    bounds = [batch.by_memory(chunk) for chunk in chunks]
    for chunk, found_bounds, _ in zip(chunks, bounds, batch.steps(), strict=True):
        for deployment, bound in zip(chunk, found_bounds, strict=True):
            state.open.append(Open(deployment=deployment, order=order, bound=bound))
            order += 1
        yield _told(state)
    for item in state.open:
        if state.is_open(item) and _over_limit(state, item):
            item.lost = "over the limit"


def _over_limit(state: State, item: Open) -> bool:
    choice, gpus = item.deployment.choice, state.key(item)[1]
    return gpus > (choice.most or gpus) or (state.scenario.one_node and gpus > choice.spec.gpus_per_node)


def _settle(state: State) -> Iterator[Search]:
    """Improve bounds and plan the most promising, until no candidate can be the cheapest of its group."""
    while wanted := state.wanted():
        _round(state, wanted[:ROUND])
        yield _told(state)


def _compare_tied(state: State) -> Iterator[Search]:
    """Among the candidates that may cost exactly as much as the best, plan the fastest, which a reader would choose."""
    rows = [item.row for item in state.open if item.row is not None and item.row.status == MEETS and not item.lost]
    if not rows:
        return
    best = min(row.key for row in rows)
    tied = [x for x in state.open if state.is_open(x) and x.bound.level > 1 and state.key(x) == best]
    tied = [x for x in tied if not _over_limit(state, x) and not x.deployment.is_tuned]
    tied = sorted(tied, key=lambda item: (item.bound.idle_ttft_s, item.order))[:TIED]
    batch = Batch(state)
    for item in tied:
        batch.holds_with(item, item.bound.replicas)
    batch.run()
    held = [item for item in tied if state.key(item) == best]
    held = sorted(held, key=lambda item: (item.bound.fleet_ttft_s, item.order))[:TIED_PLANS]
    _plan_all(state, held)
    yield _told(state)


def _round(state: State, front: list[Open]) -> None:
    """One step of the most promising candidates: a dearer bound, or the whole plan."""
    bounding = [item for item in front if item.bound.level == 1]
    known = [item for item in front if item.bound.level == 2]
    probing = [item for item in known if math.isfinite(state.affordable(item))]
    # Without a plan to undercut, the most promising is planned, once its capacity is known.
    seeds = [item for item in known if item not in probing] if front[0].bound.level > 1 else []
    planning = _apart([*(item for item in front if item.bound.level == 3), *seeds])[:PLANS]
    batch = Batch(state)
    for item in planning:
        batch.plan(item)
    for item in probing[: 4 * PLANS]:
        batch.holds_with(item, int(state.affordable(item)))
    batch.by_capacity(bounding, state.affordable)
    batch.run()
    for item in front:
        if state.is_open(item) and _over_limit(state, item):
            item.lost = "over the limit"


def _apart(items: list[Open]) -> list[Open]:
    """The first of each GPU before the second of any: plans of one round should tell different things."""
    seen: dict[str, int] = {}
    ranked = []
    for place, item in enumerate(items):
        count = seen[item.deployment.choice.name] = seen.get(item.deployment.choice.name, 0) + 1
        ranked.append((count, place, item))
    return [item for _, _, item in sorted(ranked, key=lambda entry: entry[:2])]


def _plan_all(state: State, items: list[Open]) -> None:
    batch = Batch(state)
    for item in items:
        batch.plan(item)
    batch.run()


def _leaders(state: State) -> list[Open]:
    """The candidates whose engine settings are worth varying: the cheapest plans, then the least bounds."""
    rows = [item for item in state.open if item.row is not None and item.row.status == MEETS and not item.lost]
    rows.sort(key=lambda item: (item.row.key if item.row else (0.0, 0), item.order))
    others = [item for item in state.open if item.bound.level > 1 and item not in rows and not item.lost]
    others = [item for item in others if item.bound.out in ("", MISSES_WHEN_IDLE)]
    others.sort(key=state.rank)
    return [*_apart(rows)[:TUNED], *_apart(others)[:ALSO_TUNED]]


def _worth_showing(state: State, chosen: tuple[Choice, ...]) -> list[list[Open]]:
    """What else to plan once the cheapest are known: each a list of candidates, of which the best is planned."""
    rows = [item for item in state.open if item.row is not None and item.row.status == MEETS and not item.lost]
    if not rows:
        closest = [item for item in state.open if item.row is None and item.bound.out == MISSES_WHEN_IDLE]
        closest = [item for item in closest if not _over_limit(state, item)]
        closest.sort(key=lambda item: (-item.bound.idle_attainment, state.key(item), item.order))
        return [[item] for item in _apart(closest)[:CLOSEST]]
    shown = {item.deployment.choice.name for item in rows}
    by_gpu: dict[str, list[Open]] = {}
    for item in sorted(state.open, key=state.rank):
        name = item.deployment.choice.name
        if state.is_open(item) and name not in shown:
            by_gpu.setdefault(name, []).append(item)
    tries = [items[:CAPACITY_CHUNK] for items in by_gpu.values()][:SHOWN_GPUS]
    best = min(rows, key=lambda item: (item.row.key if item.row else (0.0, 0), item.order))
    for times in FASTER:
        wider = [item for item in state.open if state.is_open(item) and _wider(item, best, times)]
        if wider:
            tries.append(wider[:1])
    return tries


def _wider(item: Open, best: Open, times: int) -> bool:
    own, other = item.deployment.changes, best.deployment.changes
    same = ("gpu", "weight_dtype", "kv_cache_dtype", "pipeline_parallel_size", "attention_data_parallel_size")
    if any(own.get(name) != other.get(name) for name in same) or own.keys() != other.keys():
        return False
    width: int = other["tensor_parallel_size"]
    return bool(own["tensor_parallel_size"] == times * width)


def _plan_cheapest(state: State, items: list[Open]) -> Iterator[Search]:
    """Plan the candidate with the least bound of a few."""
    fresh = [item for item in items if item.bound.level == 1 and not item.bound.out]
    batch = Batch(state)
    batch.by_capacity(fresh, lambda _: math.inf)
    batch.run()
    left = [item for item in items if state.is_open(item) and not _over_limit(state, item)]
    left = left or [item for item in items if item.bound.out == MISSES_WHEN_IDLE and item.row is None][:1]
    if left:
        _plan_all(state, [min(left, key=state.rank)])
    yield _told(state)


def _plan_recommended(state: State) -> Iterator[Search]:
    """Plan what vendors recommend for this model, so that it is among the rows."""
    rows = [item for item in state.open if item.row is not None and item.row.status == MEETS and not item.lost]
    best = min(rows, key=lambda item: (item.row.key if item.row else (0.0, 0), item.order), default=None)
    places = {id(item.deployment): item for item in state.open}
    found: list[tuple[Recommended, Open]] = []
    for source in recommended_for(state.scenario):
        alike = recommended_among(state.scenario, source, [item.deployment for item in state.open])
        starts = [places[id(x)] for x in alike if places[id(x)].bound.out not in (DOES_NOT_START, CONTRADICTS)]
        if starts:
            found.append((source, starts[0]))
    first = best.deployment.choice.name if best is not None else state.scenario.gpu
    found.sort(key=lambda entry: (entry[0].gpu != first, entry[0].gpu != state.scenario.gpu, state.key(entry[1])))
    state.recommended = found[:RECOMMENDED]
    _plan_all(state, [item for _, item in state.recommended if item.row is None])
    for source, item in state.recommended:
        if item.row is not None:
            item.row = dataclasses.replace(item.row, recommended_by=source.by)
    yield _told(state)


def _advice(state: State, rows: tuple[Candidate, ...]) -> str:
    if not rows or rows[0].status != MEETS:
        return ""
    return " ".join(advice(source, x.row, rows[0]) for source, x in state.recommended if x.row is not None)


def _told(state: State, *, finished: bool = False) -> Search:
    """The search as it stands."""
    rows = [item.row for item in state.open if item.row is not None and not item.lost]
    outs = [item.bound.out for item in state.open]
    considered = len(outs) - outs.count(CONTRADICTS)
    does_not_start, misses = outs.count(DOES_NOT_START), outs.count(MISSES_WHEN_IDLE)
    over = sum(item.lost == "over the limit" and not item.bound.out for item in state.open)
    ranked = ranked_rows(rows)
    settled = sum(item.row is not None and not item.lost and not item.bound.out for item in state.open)
    return Search(
        candidates=ranked,
        candidates_considered=considered,
        candidates_simulated=state.planned,
        rejected_by_memory=does_not_start,
        rejected_when_idle=misses,
        over_the_limit=over,
        pruned_by_bound=considered - does_not_start - misses - over - settled,
        wall_s=time.perf_counter() - state.started,
        summary=summary_of(ranked, state.scenario, finished=finished),
        left_out=state.left_out,
        finished=finished,
        advice=_advice(state, ranked) if finished else "",
    )


def ranked_rows(rows: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Rows that meet the targets by cost, then those that come closest; without the dominated ones.

    A dearer row stays only where it is at least 5 % faster than every cheaper one, in TTFT or TPOT. The cheapest of
    each vendor and of each kind of evidence always stays, and what a vendor recommends.
    """
    items = list(rows)
    good = sorted((row for row in items if row.status == MEETS), key=_order)
    missed = sorted((row for row in items if row.status == MISSES), key=lambda row: (-(row.attainment or 0.0), row.key))
    firsts: dict[str, Candidate] = {}
    for row in good:
        firsts.setdefault(row.scenario.gpu_spec.vendor, row)
        firsts.setdefault(row.evidence, row)
    kept: list[Candidate] = []
    for row in good:
        if row.recommended_by or row in firsts.values() or not any(_as_fast(other, row) for other in kept):
            kept.append(row)
    return (*kept, *([] if kept else missed[:CLOSEST]))


def _order(row: Candidate) -> tuple[Key, int, float, float]:
    """The cheapest first; of those that cost the same the best measured, then the surest, then the fastest."""
    evidence = EVIDENCE.index(row.evidence) if row.evidence in EVIDENCE else len(EVIDENCE)
    return row.key, evidence, -row.probability if math.isfinite(row.probability) else 0.0, row.ttft_s or 0.0


def _as_fast(other: Candidate, row: Candidate) -> bool:
    """Whether another row has about the latencies of a row, or shorter ones."""
    pairs = ((other.ttft_s, row.ttft_s), (other.tpot_s, row.tpot_s))
    return all((its or 0.0) * (1 - ALIKE) <= (own or 0.0) for its, own in pairs)
