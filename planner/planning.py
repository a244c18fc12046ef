"""The one door: `plan(scenario)` runs every stage and returns one frozen Plan.

Pages, command line and notebooks all call it, so that they cannot disagree.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from planner.advice import Finding, findings
from planner.api_prices import ApiPrices, api_prices
from planner.confidence import Band, band
from planner.cost import CostPlan, cost_plan
from planner.engine import EngineSettings
from planner.errors import Infeasible
from planner.hardware import Gpu
from planner.memory_plan import MemoryPlan
from planner.metrics import ServingMetrics, measure
from planner.model import ModelShape
from planner.policies import PolicyOutcome, compare_policies
from planner.saturation import LoadCurve, Replica, load_curve, meets, replicas_needed
from planner.scenario import Scenario
from planner.simulation import simulate_fleet
from planner.simulation.records import Requests, SimulationResult
from planner.simulation.workload import draw_requests, with_rate
from planner.sizing import plan_memory
from planner.step_time import StepTimeTable
from planner.step_time_model import step_time_table
from planner.traffic import ArrivalKind
from planner.units import format_duration, format_number, format_percent, format_usd

MAX_SIMULATED_REPLICAS = 16
DEFAULT_PRICE_USD_PER_HOUR = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLink:
    """One reason for GPUs: how many this reason alone would need, and why."""

    reason: str
    gpus: float  # inf when no number would do
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """The whole answer. Stages that could not run (the engine does not start) are None.

    `num_replicas` is what the plan buys, `replicas_for_slo` what the targets ask for (None: no number
    of replicas meets them). `slo_met` is judged by simulating the bought fleet at the peak rate.
    `chain` explains the GPU count. `bands` hold our measured error for TTFT, TPOT, throughput and KV
    pool; `slo_probability` is the chance, given that error, that both targets hold (NaN when unknown).
    """

    scenario: Scenario
    model: ModelShape
    gpu: Gpu
    engine: EngineSettings
    memory: MemoryPlan
    step_time: StepTimeTable | None
    num_replicas: int
    num_gpus: int
    replicas_for_slo: int | None
    metrics: ServingMetrics | None
    result: SimulationResult | None
    curve: LoadCurve | None
    policies: tuple[PolicyOutcome, ...]
    cost: CostPlan | None
    chain: tuple[ChainLink, ...]
    findings: tuple[Finding, ...]
    headline: str
    reasons: tuple[str, ...]
    fits: bool
    slo_met: bool
    mean_prompt_tokens: float
    mean_output_tokens: float
    bands: dict[str, Band]
    slo_probability: float


def plan(scenario: Scenario, *, requests: Requests | None = None) -> Plan:
    """Run every stage for a scenario.

    Parameters
    ----------
    scenario : Scenario
        All inputs.
    requests : Requests, optional
        A replayed trace in place of the drawn requests; its own times and lengths hold.

    Returns
    -------
    Plan
        Deterministic: the same scenario and seed give the same plan.
    """
    trace = requests
    if trace is not None:
        scenario = as_traced(scenario, trace)
    requests = draw(scenario) if trace is None else trace
    base = size(scenario, requests)
    if not base.fits:
        return base
    replica = replica_of(base)
    open_loop = scenario.arrivals in ("poisson", "bursty")
    level = scenario.service_level
    curve = load_curve(replica, _open(requests), level)
    needed = replicas_needed(scenario.peak_rate_rps, curve.slo_rate_rps) if open_loop else 1
    bought = scenario.num_replicas or (needed or _replicas_by_throughput(scenario, curve)) + scenario.spare_replicas
    serving = max(1, bought - scenario.spare_replicas) if scenario.num_replicas is None else bought
    result, metrics = operate(scenario, replica, requests, serving, trace)
    if open_loop and scenario.num_replicas is None and needed is not None:
        serving, result, metrics = _grow_until_met(scenario, replica, requests, serving, result, metrics, trace)
        needed, bought = serving, serving + scenario.spare_replicas
    price, _ = gpu_price(scenario)
    policies = compare_policies(
        replica,
        with_rate(requests, scenario.peak_rate_rps / serving) if open_loop else requests,
        level,
        usd_per_hour=price * scenario.parallelism.gpus_per_replica,
        timeline=True,
    )
    cost = price_plan(scenario, base, bought * scenario.parallelism.gpus_per_replica, metrics)
    met = meets(metrics, level)
    done = dataclasses.replace(
        base,
        num_replicas=bought,
        num_gpus=bought * scenario.parallelism.gpus_per_replica,
        replicas_for_slo=needed,
        metrics=metrics,
        result=result,
        curve=curve,
        policies=policies,
        cost=cost,
        slo_met=met,
        findings=findings(scenario, base.memory, metrics, cost, base.mean_prompt_tokens, base.mean_output_tokens),
    )
    done = dataclasses.replace(done, chain=chain(done), slo_probability=slo_probability(done, metrics))
    return dataclasses.replace(done, headline=headline(done), reasons=reasons(done))


def as_traced(scenario: Scenario, trace: Requests) -> Scenario:
    """The scenario with its rate replaced by the mean rate of a replayed trace."""
    span = float(trace.arrival_s[-1] - trace.arrival_s[0]) if len(trace) else 0.0
    if span <= 0:
        return scenario.replace(arrivals="once")
    rate = min(max(len(trace) / span, 1e-6), 1e6)
    return scenario.replace(demand="rate", rate_rps=rate, peak_factor=1.0, arrivals="poisson")


def size(scenario: Scenario, requests: Requests | None = None) -> Plan:
    """Run the stages up to memory and step time: whether one replica starts at all."""
    model, gpu = scenario.model_shape, scenario.gpu_spec
    prompt, output = mean_lengths(draw(scenario) if requests is None else requests)
    memory = plan_memory(
        model,
        gpu,
        scenario.engine_settings,
        scenario.parallelism,
        max_model_len=scenario.max_model_len,
        weight_dtype=scenario.weight_dtype,
        kv_cache_dtype=scenario.kv_cache_dtype,
        mean_sequence_tokens=prompt + output / 2,
    )
    engine = dataclasses.replace(
        scenario.engine_settings,
        max_num_seqs=memory.max_num_seqs,
        max_num_batched_tokens=memory.max_num_batched_tokens,
        gpu_memory_utilization=memory.gpu_memory_utilization,
        block_size=memory.block_size,
    )
    step_time = None
    if memory.starts:
        step_time = step_time_table(
            model,
            gpu,
            engine,
            scenario.parallelism,
            weight_dtype=scenario.weight_dtype,
            kv_cache_dtype=scenario.kv_cache_dtype,
            max_tokens=max(memory.max_num_batched_tokens, memory.max_num_seqs),
        )
    sized = Plan(
        scenario=scenario,
        model=model,
        gpu=gpu,
        engine=engine,
        memory=memory,
        step_time=step_time,
        num_replicas=0,
        num_gpus=0,
        replicas_for_slo=None,
        metrics=None,
        result=None,
        curve=None,
        policies=(),
        cost=None,
        chain=(),
        findings=findings(scenario, memory, None, None, prompt, output),
        headline="",
        reasons=memory.remedies,
        fits=memory.starts,
        slo_met=False,
        mean_prompt_tokens=prompt,
        mean_output_tokens=output,
        bands=bands_of(model, engine),
        slo_probability=math.nan,
    )
    return sized if memory.starts else dataclasses.replace(sized, headline=headline(sized))


def mean_lengths(requests: Requests) -> tuple[float, float]:
    """Mean prompt and output tokens of the requests, after clipping to the context. [tokens]"""
    return float(requests.prompt_tokens.mean()), float(requests.output_tokens.mean())


def draw(scenario: Scenario) -> Requests:
    """Draw the scenario's requests: same scenario and seed, same requests."""
    return draw_requests(scenario.traffic, scenario.num_requests, scenario.seed, max_model_len=scenario.max_model_len)


def replica_of(sized: Plan) -> Replica:
    """What the simulator needs of one replica of a sized plan.

    Raises
    ------
    Infeasible
        When the engine does not start.
    """
    if sized.step_time is None:
        raise Infeasible(sized.memory.refusal, sized.memory.remedies)
    return Replica(engine=sized.engine, limits=sized.memory.limits(), step_time=sized.step_time)


def operate(
    scenario: Scenario, replica: Replica, requests: Requests, num_replicas: int, trace: Requests | None = None
) -> tuple[SimulationResult, ServingMetrics]:
    """Simulate the fleet at the peak rate, or on a trace with its own times.

    Beyond 16 replicas, 16 of them at their share of the rate stand for the whole, since replicas
    behind a round-robin router differ only by chance.
    """
    shown = min(num_replicas, MAX_SIMULATED_REPLICAS)
    if requests.closed_loop_users:
        per_replica = max(1, round(requests.closed_loop_users / num_replicas))
        result = replica.run(dataclasses.replace(requests, closed_loop_users=per_replica), timeline=True)
        return result, measure(result, scenario.service_level)
    if shown == 1:
        keep = scenario.arrivals == "once" or trace is not None
        offered = requests if keep else with_rate(requests, scenario.peak_rate_rps)
        result = replica.run(offered, timeline=True)
        return result, measure(result, scenario.service_level)
    if trace is not None:
        total, shown = trace, num_replicas
    else:
        # Enough requests that every replica sees a steady state.
        total = draw_requests(
            scenario.traffic, scenario.num_requests * shown, scenario.seed, max_model_len=scenario.max_model_len
        )
        if scenario.arrivals != "once":
            total = with_rate(total, scenario.peak_rate_rps * shown / num_replicas)
    result = simulate_fleet(
        total,
        replica.engine,
        replica.limits,
        replica.step_time,
        num_replicas=shown,
        router="round_robin",
        seed=scenario.seed,
    )
    return result, measure(result, scenario.service_level)


def _grow_until_met(
    scenario: Scenario,
    replica: Replica,
    requests: Requests,
    serving: int,
    result: SimulationResult,
    metrics: ServingMetrics,
    trace: Requests | None,
) -> tuple[int, SimulationResult, ServingMetrics]:
    # The sweep uses one replica's Poisson share; the fleet's own run has the last word, both ways.
    level = scenario.service_level
    for _ in range(4):
        if meets(metrics, level):
            break
        serving += max(1, serving // 20)
        result, metrics = operate(scenario, replica, requests, serving, trace)
    for _ in range(3):  # the sweep is close; a huge fleet must not be tried one replica at a time
        fewer = serving - max(1, serving // 50)
        if fewer < 1:
            break
        fewer_result, fewer_metrics = operate(scenario, replica, requests, fewer, trace)
        if not meets(fewer_metrics, level):
            break
        serving, result, metrics = fewer, fewer_result, fewer_metrics
    return serving, result, metrics


def _open(requests: Requests) -> Requests:
    """The same requests as an open loop, so that a rate can be imposed."""
    if requests.closed_loop_users == 0 and len(requests) > 1 and requests.arrival_s[-1] > 0:
        return requests
    gaps = np.random.default_rng(0).exponential(size=len(requests))
    return dataclasses.replace(requests, arrival_s=np.cumsum(gaps), closed_loop_users=0)


def _replicas_by_throughput(scenario: Scenario, curve: LoadCurve) -> int:
    if curve.capacity_rps <= 0:
        return 1
    return max(1, math.ceil(scenario.peak_rate_rps / curve.capacity_rps))


def gpu_price(scenario: Scenario) -> tuple[float, str]:
    """Price of one GPU-hour and where it comes from. [USD/h]"""
    if scenario.usd_per_gpu_hour is not None:
        return scenario.usd_per_gpu_hour, "entered by hand"
    price = scenario.gpu_spec.usd_per_hour_typical
    if price is not None:
        return price, scenario.gpu_spec.price_source
    return DEFAULT_PRICE_USD_PER_HOUR, "no price known: 2 USD assumed, enter your own"


def price_plan(scenario: Scenario, base: Plan, num_gpus: int, metrics: ServingMetrics) -> CostPlan:
    """Work out the bill; closed loops and bursts are priced at the rate that they reach."""
    price, source = gpu_price(scenario)
    known = api_prices(base.model.name)
    own_in, own_out = scenario.api_usd_per_mtok_input, scenario.api_usd_per_mtok_output
    api = known
    if own_in is not None or own_out is not None:
        api = ApiPrices(
            usd_per_mtok_input=own_in if own_in is not None else (known.usd_per_mtok_input if known else 0.0),
            usd_per_mtok_output=own_out if own_out is not None else (known.usd_per_mtok_output if known else 0.0),
            offers=known.offers if known else (),
            source="entered by hand",
        )
    open_loop = scenario.arrivals in (ArrivalKind.POISSON, ArrivalKind.BURSTY)
    peak = scenario.peak_rate_rps if open_loop else max(metrics.requests_per_s, 1e-9)
    return cost_plan(
        num_gpus=num_gpus,
        usd_per_gpu_hour=price,
        price_source=source,
        hours_per_month=scenario.hours_per_month,
        mean_rate_rps=peak / scenario.peak_factor if open_loop else peak,
        peak_rate_rps=peak,
        mean_prompt_tokens=base.mean_prompt_tokens,
        mean_output_tokens=base.mean_output_tokens,
        api=api,
    )


def bands_of(model: ModelShape, engine: EngineSettings) -> dict[str, Band]:
    """Our measured error on the class of this plan, by headline figure."""
    names = {
        "ttft": "ttft_ms_mean",
        "tpot": "tpot_ms_mean",
        "throughput": "output_tok_s_total",
        "kv_pool": "available_kv_gib",
        "weights": "weights_gib_per_gpu",
    }
    return {
        key: band(quantity, is_moe=model.is_moe, engine_family=engine.family) for key, quantity in names.items()
    }


def slo_probability(done: Plan, metrics: ServingMetrics) -> float:
    """Chance that both targets hold, given our error: the smaller of the two, since they fail together."""
    scenario = done.scenario
    chances = (
        done.bands["ttft"].probability_below(metrics.ttft_s.at(scenario.target_quantile), scenario.ttft_target_s),
        done.bands["tpot"].probability_below(metrics.tpot_s.at(scenario.target_quantile), scenario.tpot_target_s),
    )
    known = [chance for chance in chances if not math.isnan(chance)]
    return min(known) if known else math.nan


def chain(done: Plan) -> tuple[ChainLink, ...]:
    """Explain the GPU count: what each reason alone would need, and which one decides.

    Memory: bytes of KV cache that the running sequences hold by Little's law. Prefill and decode: busy
    seconds of each per request × rate. Targets: rate ÷ the highest rate that meets them.
    """
    scenario, metrics, curve = done.scenario, done.metrics, done.curve
    per_replica = scenario.parallelism.gpus_per_replica
    if metrics is None or curve is None or done.step_time is None:
        return ()
    rate = scenario.peak_rate_rps
    links = [
        ChainLink(
            reason="Weights alone",
            gpus=float(per_replica),
            detail=f"one replica of {per_replica} GPU{'s' if per_replica > 1 else ''} holds the weights",
        )
    ]
    held = metrics.e2e_s.mean * rate / done.num_replicas if done.num_replicas else 0.0
    by_kv = held * done.num_replicas / max(done.memory.typical_concurrency_paged, 1e-9)
    links.append(
        ChainLink(
            reason="KV cache",
            gpus=math.ceil(max(by_kv, 1e-9)) * per_replica,
            detail=f"{format_number(held * done.num_replicas)} sequences in flight (rate × time in system), "
            f"{format_number(done.memory.typical_concurrency_paged)} fit on one replica",
        )
    )
    by_work = rate / curve.capacity_rps if curve.capacity_rps else math.inf
    links.append(
        ChainLink(
            reason="Throughput",
            gpus=math.ceil(by_work) * per_replica if math.isfinite(by_work) else math.inf,
            detail=f"{format_number(rate)} req/s at the peak, one replica finishes "
            f"{format_number(curve.capacity_rps)} with a full queue",
        )
    )
    needed = done.replicas_for_slo
    links.append(
        ChainLink(
            reason="Latency target",
            gpus=needed * per_replica if needed is not None else math.inf,
            detail=f"one replica holds the targets up to {format_number(curve.slo_rate_rps)} req/s"
            if curve.slo_rate_rps
            else "the targets are missed even by an idle replica",
        )
    )
    if scenario.spare_replicas:
        links.append(
            ChainLink(
                reason="Failure reserve",
                gpus=done.num_replicas * per_replica,
                detail=f"{scenario.spare_replicas} more so that the targets hold when that many fail",
            )
        )
    return tuple(links)


def headline(done: Plan) -> str:
    """The answer in one sentence that a team lead can repeat."""
    scenario, memory = done.scenario, done.memory
    model = done.model.name.rsplit("/", 1)[-1]
    if not done.fits:
        cure = f"; {' or '.join(memory.remedies[:2])} would do" if memory.remedies else ""
        gpus = scenario.parallelism.gpus_per_replica
        return f"{model} does not start on {gpus} × {done.gpu.name}: {memory.refusal.rstrip('.')}{cure}."
    assert done.metrics is not None
    assert done.cost is not None
    who = f"{scenario.users:,} users ({format_number(scenario.peak_rate_rps)} req/s at peak)"
    if scenario.arrivals == "closed":
        who = f"{scenario.concurrent_users:,} concurrent users"
    elif scenario.arrivals == "once":
        who = f"a burst of {scenario.num_requests:,} requests"
    elif scenario.demand != "users":
        who = f"{format_number(scenario.peak_rate_rps)} req/s at peak"
    verb = "serve" if done.num_gpus > 1 else "serves"
    quantile = f"p{scenario.target_quantile * 100:g}"
    numbers = (
        f"{quantile} first token {format_duration(done.metrics.ttft_s.at(scenario.target_quantile))}, "
        f"{format_duration(done.metrics.tpot_s.at(scenario.target_quantile))} per token, "
        f"{format_usd(done.cost.usd_per_million_tokens)} per million tokens"
    )
    if done.slo_met:
        return f"{done.num_gpus} × {done.gpu.name} {verb} {who} of {model}: {numbers}."
    return (
        f"{done.num_gpus} × {done.gpu.name} cannot hold the targets for {who} of {model}: {numbers}; "
        f"{format_percent(done.metrics.slo_attainment)} of requests meet them."
    )


def reasons(done: Plan) -> tuple[str, ...]:
    """Why this answer, in sentences made from the numbers."""
    assert done.metrics is not None
    assert done.curve is not None
    assert done.cost is not None
    said = []
    decisive = max(done.chain, key=lambda link: link.gpus)
    if decisive.gpus <= done.scenario.parallelism.gpus_per_replica:
        said.append("One replica is enough on every count: weights, KV cache, throughput and latency targets.")
    else:
        said.append(f"{decisive.reason} sets the number of GPUs: {decisive.detail}.")
    if done.curve.slo_rate_rps:
        room = done.curve.slo_rate_rps * max(1, done.num_replicas - done.scenario.spare_replicas)
        spare = room / done.scenario.peak_rate_rps - 1
        if spare > 0:
            said.append(
                f"The fleet holds the targets up to about {format_number(room)} req/s, {format_percent(spare)} "
                "more than the peak."
            )
    elif done.scenario.arrivals in ("poisson", "bursty"):
        idle = done.curve.points[0].metrics if done.curve.points else done.metrics
        said.append(
            f"Even an idle replica takes {format_duration(idle.ttft_s.at(done.scenario.target_quantile))} to the first "
            f"token and {format_duration(idle.tpot_s.at(done.scenario.target_quantile))} per token: more replicas do "
            "not help, a faster GPU, more tensor parallelism or a smaller model does."
        )
    if done.cost.break_even_requests_per_month:
        said.append(
            f"A hosted API ({done.cost.api_source}) becomes cheaper below "
            f"{format_number(done.cost.break_even_requests_per_month)} requests a month; this plan serves "
            f"{format_number(done.cost.requests_per_month)}."
        )
    return tuple(said)
