"""Search: the cheapest GPU, parallelism and precision that meet the targets.

Candidates that do not start are dropped first, then those that cost more than the best so far even at full load.
The rest is simulated on the same requests.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass

from planner.answer.planning import replica_of, size
from planner.catalog import get_gpu, gpu_names
from planner.cost import gpu_price, served
from planner.errors import InvalidInput, PlannerError
from planner.inputs import Gpu
from planner.memory import REFUSED_STATES, kv_cache_type
from planner.scenario import CUSTOM, Scenario
from planner.service import MOST_REQUESTS, Fleet, capacity_rps, deploy, highest_rate, measure, meets
from planner.units import SECONDS_PER_HOUR, counted, format_number, format_usd
from planner.workload import draw, mean_lengths, with_rate

SEARCH_REQUESTS = 600
SEARCH_LENGTHS = 4  # while candidates are compared, a fleet shares this many times the requests
TENSOR_PARALLEL = (1, 2, 4, 8)
KEPT = 30
CONFIRMED, MOST_CONFIRMED = 5, 20  # top rows confirmed as whole plans, and the most plans run for that


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One deployment that was considered, with its outcome.

    `status` is "meets targets", "misses targets", "does not start" or "cannot be cheaper". Figures that
    were not computed are None. `scenario` opens it as its own plan.
    """

    scenario: Scenario
    status: str
    reason: str
    num_replicas: int | None = None
    num_gpus: int | None = None
    usd_per_month: float | None = None
    usd_per_million_tokens: float | None = None
    slo_rate_rps: float | None = None
    capacity_rps: float | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The outcome of a search: candidates, the cheapest that meets the targets first."""

    candidates: tuple[Candidate, ...]
    candidates_considered: int
    candidates_simulated: int
    rejected_by_memory: int
    pruned_by_bound: int
    wall_s: float
    summary: str

    @property
    def best(self) -> Candidate | None:
        """The cheapest candidate that meets the targets; None if none does."""
        first = self.candidates[0] if self.candidates else None
        return first if first is not None and first.status == "meets targets" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One changed input and what it does to the answer."""

    label: str
    scenario: Scenario
    num_gpus: int | None
    usd_per_month: float | None
    text: str


def candidate_scenarios(
    scenario: Scenario, *, gpus: Iterable[str] | None = None, weight_dtypes: Iterable[str] | None = None
) -> tuple[Scenario, ...]:
    """The deployments to consider: GPU × tensor parallel × pipeline parallel × precision.

    Parameters
    ----------
    scenario : Scenario
        Model, traffic, targets and engine stay as they are.
    gpus : iterable of str, optional
        Catalog names; None: every accelerator with a known price.
    weight_dtypes : iterable of str, optional
        Precisions to try; None: the scenario's own and fp8.
    """
    names = tuple(gpus) if gpus is not None else tuple(n for n in gpu_names() if get_gpu(n).usd_per_hour_typical)
    dtypes = tuple(weight_dtypes) if weight_dtypes is not None else tuple(dict.fromkeys((scenario.weight_dtype, "fp8")))
    if scenario.gpu == CUSTOM and gpus is None:
        names = (CUSTOM, *names)
    found = []
    for name in names:
        spec = scenario.gpu_spec if name == CUSTOM else get_gpu(name)
        for tensor, pipeline in _splits(spec):
            for dtype in dtypes:
                if dtype == "fp8" and not spec.fp8_tflops and dtype != scenario.weight_dtype:
                    continue
                found.append(_vary(scenario, name, tensor, pipeline, dtype))
    return tuple(dict.fromkeys(item for item in found if item is not None))


def _splits(gpu: Gpu) -> tuple[tuple[int, int], ...]:
    widths = [width for width in TENSOR_PARALLEL if width <= gpu.gpus_per_node]
    return (*((width, 1) for width in widths), (widths[-1], 2))


def _vary(scenario: Scenario, gpu: str, tensor: int, pipeline: int, dtype: str) -> Scenario | None:
    same_gpu = gpu == scenario.gpu
    try:
        return scenario.replace(
            gpu=gpu,
            tensor_parallel_size=tensor,
            pipeline_parallel_size=pipeline,
            weight_dtype=dtype,
            num_replicas=None,
            usd_per_gpu_hour=scenario.usd_per_gpu_hour if same_gpu else None,
            gpu_memory_utilization=scenario.gpu_memory_utilization if same_gpu else None,
            max_num_seqs=scenario.max_num_seqs if same_gpu else None,
            max_num_batched_tokens=scenario.max_num_batched_tokens if same_gpu else None,
        )
    except InvalidInput:
        return None


def recommend(
    scenario: Scenario,
    *,
    gpus: Iterable[str] | None = None,
    weight_dtypes: Iterable[str] | None = None,
    executor: Executor | None = None,
) -> Search:
    """The cheapest deployments that meet the targets.

    Parameters
    ----------
    scenario : Scenario
        Model, traffic, targets and prices.
    gpus, weight_dtypes : iterable of str, optional
        See `candidate_scenarios`.
    executor : concurrent.futures.Executor, optional
        Where candidates are sized; None: in this thread. Dask's `Client.get_executor()` works.

    Returns
    -------
    Search
        Candidates that meet the targets, cheapest first; then those that miss them; then the rest.
    """
    if not scenario.is_open_loop:
        raise InvalidInput(
            "arrivals", scenario.arrivals, "poisson or bursty; the search needs an arrival rate to size for"
        )
    started = time.perf_counter()
    options = candidate_scenarios(scenario, gpus=gpus, weight_dtypes=weight_dtypes)
    run = executor.map if executor is not None else map
    sized = list(run(bound, options))
    rejected = [item for item in sized if item.status == "does not start"]
    open_items = sorted((item for item in sized if item.status == ""), key=_month)
    judged: list[Candidate] = []
    simulated, best = 0, math.inf
    for item in open_items:
        # The bound assumes full load; past twice the best, nothing later is worth simulating.
        if (item.usd_per_month or 0.0) > 2 * best or (simulated >= KEPT and (item.usd_per_month or 0.0) > best):
            judged.append(dataclasses.replace(item, status="cannot be cheaper", reason=_beaten(item, best)))
            continue
        outcome = evaluate(item)
        simulated += 1
        judged.append(outcome)
        if outcome.status == "meets targets" and outcome.usd_per_month is not None:
            best = min(best, outcome.usd_per_month)
    ranked = confirmed(_ranked(judged + rejected))
    return Search(
        candidates=tuple(ranked),
        candidates_considered=len(options),
        candidates_simulated=simulated,
        rejected_by_memory=len(rejected),
        pruned_by_bound=sum(item.status == "cannot be cheaper" for item in judged),
        wall_s=time.perf_counter() - started,
        summary=_summary(ranked, scenario),
    )


def _month(item: Candidate) -> float:
    """What a candidate costs a month; owned GPUs may cost nothing. [USD]"""
    return math.inf if item.usd_per_month is None else item.usd_per_month


def _ranked(items: Iterable[Candidate]) -> list[Candidate]:
    order = {"meets targets": 0, "misses targets": 1, "cannot be cheaper": 2, "does not start": 3}
    return sorted(items, key=lambda c: (order[c.status], _month(c), c.num_gpus or 0))


def confirmed(ranked: list[Candidate]) -> list[Candidate]:
    """The candidates with the leading ones confirmed as whole plans.

    The search simulates one replica on few requests; a plan simulates the whole fleet on all of them and may need one
    more replica. The top of the list must agree with its own plan.

    Parameters
    ----------
    ranked : list of Candidate
        Best first.

    Returns
    -------
    list of Candidate
        Ranked again.
    """
    seen: set[Scenario] = set()
    while len(seen) < MOST_CONFIRMED:
        leaders = [item for item in ranked[:CONFIRMED] if item.status == "meets targets"]
        open_item = next((item for item in leaders if item.scenario not in seen), None)
        if open_item is None:
            break
        seen.add(open_item.scenario)
        count = open_item.scenario.num_requests
        whole = evaluate(open_item, fleet_of(open_item, count, MOST_REQUESTS), count)
        ranked = _ranked(whole if item is open_item else item for item in ranked)
    return ranked


def _beaten(item: Candidate, best: float) -> str:
    least = format_usd(item.usd_per_month or 0.0)
    return f"costs at least {least} a month even at full load; the best costs {format_usd(best)}"


def bound(scenario: Scenario) -> Candidate:
    """One candidate with a lower bound on its cost: replicas at full load, no waiting."""
    short = scenario.replace(num_requests=SEARCH_REQUESTS)
    requests = draw(short)
    try:
        sized = size(short, requests, explain=False)
    except PlannerError as error:
        return Candidate(scenario=scenario, status="does not start", reason=str(error))
    if sized.memory.outcome == REFUSED_STATES and scenario.max_num_seqs is None:
        # Hybrids refuse the default max_num_seqs on small pools; users then lower it, and so does the search.
        for fewer in (512, 256, 128, 64):
            scenario, short = scenario.replace(max_num_seqs=fewer), short.replace(max_num_seqs=fewer)
            sized = size(short, requests, explain=False)
            if sized.fits:
                break
    if not sized.fits:
        return Candidate(scenario=scenario, status="does not start", reason=sized.memory.refusal)
    top = capacity_rps(replica_of(sized), requests)
    if top <= 0:
        return Candidate(
            scenario=scenario, status="does not start", reason="no request of this traffic fits on a replica"
        )
    replicas = max(1, math.ceil(scenario.peak_rate_rps / top)) + scenario.spare_replicas
    return _priced(Candidate(scenario=scenario, status="", reason="", capacity_rps=top), replicas)


def _priced(item: Candidate, replicas: int) -> Candidate:
    scenario = item.scenario
    gpus = replicas * scenario.parallelism.gpus_per_replica
    month = gpus * gpu_price(scenario)[0] * scenario.hours_per_month
    return dataclasses.replace(item, num_replicas=replicas, num_gpus=gpus, usd_per_month=month)


def fleet_of(
    item: Candidate,
    num_requests: int = SEARCH_REQUESTS,
    most_requests: int = SEARCH_LENGTHS * SEARCH_REQUESTS,
    *,
    sweep: bool = True,
) -> Fleet:
    """One candidate's replicas simulated together, as a plan does; on few requests by default."""
    short = item.scenario.replace(num_requests=num_requests, num_replicas=None)
    requests = draw(short)
    replica = replica_of(size(short, requests, explain=False))
    return deploy(short, replica, requests, most_requests=most_requests, sweep=sweep)


def evaluate(item: Candidate, fleet: Fleet | None = None, num_requests: int = SEARCH_REQUESTS) -> Candidate:
    """One candidate simulated: the highest rate that meets the targets, the replicas, the latency there.

    One replica at its share of the rate stands for the fleet. The replicas are simulated together where sharing
    matters (bursts, LoRA slots), or where a fleet is given (of `num_requests`).
    """
    scenario = item.scenario
    short = scenario.replace(num_requests=num_requests)
    requests = draw(short)
    level = scenario.service_level
    if fleet is None and (scenario.arrivals == "bursty" or scenario.num_lora_adapters):
        fleet = fleet_of(item)
    if fleet is not None:
        rate, replicas, metrics = fleet.curve.slo_rate_rps, fleet.replicas_for_slo, fleet.metrics
    else:
        replica = replica_of(size(short, requests, explain=False))
        rate = highest_rate(replica, requests, short.service_level, item.capacity_rps or 0.0)
        replicas = max(1, math.ceil(scenario.peak_rate_rps / rate - 1e-9)) if rate > 0 else None
        share = scenario.peak_rate_rps / replicas if replicas else 0.02 * (item.capacity_rps or 1.0)
        metrics = measure(replica.run(with_rate(requests, share)), level)
    if replicas is None:
        return dataclasses.replace(
            item,
            status="misses targets",
            reason="even one idle replica misses the targets",
            slo_rate_rps=0.0,
            ttft_s=metrics.ttft_s.at(level.quantile),
            tpot_s=metrics.tpot_s.at(level.quantile),
        )
    priced = _priced(item, replicas + scenario.spare_replicas)
    lengths = mean_lengths(requests, scenario.max_model_len)
    mean_rps, tokens_per_request = scenario.mean_rate_rps, sum(lengths)
    if fleet is not None:
        work = served(short, fleet, *lengths)
        mean_rps, tokens_per_request = work.mean_rps, work.mean_prompt_tokens + work.mean_output_tokens
    tokens = mean_rps * scenario.hours_per_month * SECONDS_PER_HOUR * tokens_per_request
    return dataclasses.replace(
        priced,
        status="meets targets",
        reason=f"meets the targets up to {format_number(rate)} req/s per replica",
        slo_rate_rps=rate,
        usd_per_million_tokens=(priced.usd_per_month or 0.0) / tokens * 1e6,
        ttft_s=metrics.ttft_s.at(level.quantile),
        tpot_s=metrics.tpot_s.at(level.quantile),
    )


def _summary(ranked: list[Candidate], scenario: Scenario) -> str:
    good = [item for item in ranked if item.status == "meets targets"]
    if not good:
        return "No deployment tried meets these targets. Relax the target that the closest ones miss."
    best = good[0]
    weights = "published weights" if best.scenario.weight_dtype == "auto" else f"{best.scenario.weight_dtype} weights"
    rank = "only deployment tried" if len(good) == 1 else f"cheapest of {len(good)} deployments"
    split = "" if best.scenario.tensor_parallel_size == 1 else f", tensor parallel {best.scenario.tensor_parallel_size}"
    return (
        f"{best.num_gpus} × {best.scenario.gpu}{split} with {weights} is the {rank} that "
        f"meet{'s' if len(good) == 1 else ''} the targets: {format_usd(best.usd_per_month or 0.0)} a month."
    )


def _cache_is_fp8(scenario: Scenario) -> bool:
    """Whether this plan's KV cache is fp8 already."""
    model, engine = scenario.model_shape, scenario.engine_settings
    return kv_cache_type(model, engine, scenario.weight_dtype, scenario.kv_cache_dtype) == "fp8"


def what_would_change(scenario: Scenario) -> tuple[Change, ...]:
    """What single changes of a plan do to its GPUs and cost.

    The changes: fp8 weights, fp8 KV cache, more and less tensor parallelism, more traffic, tighter and looser
    targets. Changes that the other inputs forbid are left out.
    """
    if not scenario.is_open_loop:
        return ()  # a closed loop or a burst has no rate to size for
    base, fleet = _judged(scenario.replace(num_replicas=None))
    tries: list[tuple[str, dict[str, object]]] = [
        ("fp8 weights", {"weight_dtype": "fp8"}),
        ("fp8 KV cache", {} if _cache_is_fp8(scenario) else {"kv_cache_dtype": "fp8"}),
        ("twice the tensor parallelism", {"tensor_parallel_size": scenario.tensor_parallel_size * 2}),
        ("half the tensor parallelism", {"tensor_parallel_size": scenario.tensor_parallel_size // 2}),
        ("50 % more traffic", _more_traffic(scenario, 1.5)),
    ]
    for target in scenario.targets:
        tries.append((f"half the {target.name} target", {target.field: target.limit_s / 2}))
        tries.append((f"twice the {target.name} target", {target.field: target.limit_s * 2}))
    changes = []
    for label, fields in tries:
        try:
            varied = scenario.replace(num_replicas=None, **fields)
            if not fields or varied == scenario:
                continue
            settled = fleet is not None and "target" in label and _keeps_its_fleet(fleet, varied, label)
            changes.append(_change(label, varied, base, base if settled else _judged(varied)[0]))
        except PlannerError:
            continue
    return tuple(changes)


def _more_traffic(scenario: Scenario, factor: float) -> dict[str, object]:
    if scenario.demand == "users":
        return {"users": math.ceil(scenario.users * factor)}
    if scenario.demand == "daily":
        return {"requests_per_day": scenario.requests_per_day * factor}
    return {"rate_rps": scenario.rate_rps * factor}


def _judged(scenario: Scenario) -> tuple[Candidate, Fleet | None]:
    # The same short fleet simulation before and after, so the difference comes from the change alone.
    low = bound(scenario)
    if low.status:
        return low, None
    fleet = fleet_of(low, sweep=False)
    return evaluate(low, fleet), fleet


def _keeps_its_fleet(fleet: Fleet, varied: Scenario, label: str) -> bool:
    """Whether the replica count is the same under another target, without simulating again.

    A tighter target needs at least as many, which already meet it; a looser one still needs one.
    """
    if label.startswith("half"):
        level = varied.service_level
        return fleet.replicas_for_slo is not None and meets(measure(fleet.result, level), level)
    return fleet.replicas_for_slo == 1


def _change(label: str, varied: Scenario, base: Candidate, done: Candidate) -> Change:
    if done.status != "meets targets" or done.num_gpus is None:
        text = "does not start" if done.status == "does not start" else "no number of replicas meets the targets"
        return Change(label=label, scenario=varied, num_gpus=None, usd_per_month=None, text=text)
    if base.status != "meets targets" or base.num_gpus is None:
        return Change(
            label=label,
            scenario=varied,
            num_gpus=done.num_gpus,
            usd_per_month=done.usd_per_month,
            text=f"meets the targets with {counted(done.num_gpus, 'GPU')}",
        )
    difference = done.num_gpus - base.num_gpus
    text = "no change"
    if difference:
        text = f"{'adds' if difference > 0 else 'saves'} {counted(abs(difference), 'GPU')}"
    money = (done.usd_per_month or 0.0) - (base.usd_per_month or 0.0)
    if abs(money) > 0.5:
        text += f" ({'+' if money > 0 else '−'}{format_usd(abs(money))} a month)"
    return Change(label=label, scenario=varied, num_gpus=done.num_gpus, usd_per_month=done.usd_per_month, text=text)
