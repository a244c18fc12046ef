"""The one door: `plan(scenario)` runs every stage and returns one frozen Plan.

Pages, command line and notebooks all call it, so that they cannot disagree.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from planner.advice import findings
from planner.answer import Plan, chain, headline, reasons
from planner.api_prices import ApiPrices, api_prices
from planner.clients import share_of_one
from planner.confidence import Band, band
from planner.cost import CostPlan, cost_plan
from planner.engine import EngineSettings
from planner.errors import Infeasible
from planner.fleet import fewest_sharing, fleet_size, operate
from planner.metrics import ServingMetrics
from planner.model import ModelShape
from planner.policies import compare_policies
from planner.saturation import STEADY_SHARE, LoadCurve, Replica, load_curve, meets, replicas_needed
from planner.scenario import Scenario
from planner.simulation.records import Requests, SimulationResult
from planner.simulation.workload import draw_requests, with_rate
from planner.sizing import kv_cache_type, plan_memory
from planner.step_time_model import step_time_table
from planner.units import GIB

DEFAULT_PRICE_USD_PER_HOUR = 2.0
NEGLIGIBLE = 0.01  # share of the requests that may be lost before the lengths of the finished ones are told apart


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
    open_loop, level = scenario.is_open_loop, scenario.service_level
    fleet = deploy(scenario, replica, requests, trace)
    bought, metrics = fleet.num_replicas, fleet.metrics
    price, _ = gpu_price(scenario)
    policies = compare_policies(
        replica,
        with_rate(requests, scenario.peak_rate_rps / fleet.num_serving)
        if open_loop
        else share_of_one(requests, fleet.num_serving),
        level,
        usd_per_hour=price * scenario.parallelism.gpus_per_replica,
        timeline=True,
    )
    work = served(scenario, fleet, base.mean_prompt_tokens, base.mean_output_tokens)
    cost = price_plan(base, bought * scenario.parallelism.gpus_per_replica, work)
    met = meets(metrics, level) and not (open_loop and fleet.overloaded(scenario.peak_rate_rps))
    done = dataclasses.replace(
        base,
        num_replicas=bought,
        num_gpus=bought * scenario.parallelism.gpus_per_replica,
        replicas_for_slo=replicas_for_targets(scenario, replica, requests, fleet, trace, met=met),
        metrics=metrics,
        result=fleet.result,
        curve=fleet.curve,
        policies=policies,
        cost=cost,
        slo_met=met,
        findings=findings(
            scenario,
            base.memory,
            metrics,
            cost,
            base.mean_prompt_tokens,
            base.mean_output_tokens,
            replica.step_time.notes,
        ),
    )
    done = dataclasses.replace(done, chain=chain(done), slo_probability=slo_probability(done, metrics))
    return dataclasses.replace(done, headline=headline(done), reasons=reasons(done))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deployment:
    """Replicas of one kind at the peak: how many, the load that each can bear, and what they make of the requests.

    `num_serving` of the `num_replicas` share the load; `replicas_for_slo` is None when no number meets the targets.
    """

    curve: LoadCurve
    replicas_for_slo: int | None
    num_replicas: int
    num_serving: int
    result: SimulationResult
    metrics: ServingMetrics

    def overloaded(self, rate_rps: float) -> bool:
        """Whether a rate exceeds what all replicas finish at full throughput: then the queue grows for ever."""
        return rate_rps > self.num_serving * self.curve.capacity_rps * (1 + 1e-9)


def deploy(scenario: Scenario, replica: Replica, requests: Requests, trace: Requests | None = None) -> Deployment:
    """Find how many replicas the peak needs, and serve the requests with them.

    Parameters
    ----------
    scenario : Scenario
        Traffic, targets, and the number of replicas where the user fixes it.
    replica : Replica
        What each replica is.
    requests : Requests
        The drawn requests.
    trace : Requests, optional
        A replayed trace, served at its own times.

    Returns
    -------
    Deployment
    """
    open_loop, level = scenario.is_open_loop, scenario.service_level
    curve = load_curve(replica, _open(requests), level)
    needed = replicas_needed(scenario.peak_rate_rps, curve.slo_rate_rps) if open_loop else 1
    least = replicas_needed(scenario.peak_rate_rps, STEADY_SHARE * curve.capacity_rps) or 1
    spare = 0 if scenario.num_replicas is not None else scenario.spare_replicas
    serving = guess = scenario.num_replicas or needed or least
    searched = open_loop and scenario.num_replicas is None
    if searched:
        needed = fleet_size(scenario, replica, requests, guess, trace, least)
        serving = needed or guess
    result, metrics = operate(scenario, replica, requests, serving, trace)
    if searched and needed is not None:
        while not meets(metrics, level) and serving < 2 * guess + 8:  # the search simulates fewer replicas
            serving += max(1, serving // 20)
            result, metrics = operate(scenario, replica, requests, serving, trace)
        needed = serving if meets(metrics, level) else None
        if needed is not None:
            curve = _as_in_the_fleet(curve, scenario.peak_rate_rps, needed)
    return Deployment(
        curve=curve,
        replicas_for_slo=needed,
        num_replicas=serving + spare,
        num_serving=serving,
        result=result,
        metrics=metrics,
    )


def _as_in_the_fleet(curve: LoadCurve, peak_rate_rps: float, replicas: int) -> LoadCurve:
    # The fleet's run found that `replicas` hold the peak and one fewer do not: the rate that one replica
    # holds lies between, and no figure may say otherwise.
    if curve.slo_rate_rps <= 0:
        return curve
    ceiling = math.inf if replicas == 1 else peak_rate_rps / (replicas - 1) * (1 - 1e-9)
    rate = min(max(curve.slo_rate_rps, peak_rate_rps / replicas), ceiling)
    return dataclasses.replace(curve, slo_rate_rps=rate)


def replicas_for_targets(
    scenario: Scenario, replica: Replica, requests: Requests, fleet: Deployment, trace: Requests | None, *, met: bool
) -> int | None:
    """Fewest replicas that hold the targets, in agreement with what the fleet's own simulation found.

    A load curve of one replica does not show that several share bursts. So a fleet that holds the targets is
    enough whatever the curve says, and where the user's own number misses them, more are tried.
    """
    needed, serving = fleet.replicas_for_slo, fleet.num_serving
    if not scenario.is_open_loop:
        return 1 if met and serving == 1 else fewest_sharing(scenario, replica, requests)
    if met:
        return min(needed or serving, serving)
    if scenario.num_replicas is not None and (needed is None or needed <= serving):
        return fleet_size(scenario, replica, requests, serving + 1, trace, serving + 1)
    return needed


def as_traced(scenario: Scenario, trace: Requests) -> Scenario:
    """The scenario with its rate replaced by the mean rate of a replayed trace."""
    span = float(trace.arrival_s[-1] - trace.arrival_s[0]) if len(trace) else 0.0
    if span <= 0:
        return scenario.replace(arrivals="once")
    rate = min(max(len(trace) / span, 1e-6), 1e6)
    return scenario.replace(demand="rate", rate_rps=rate, peak_factor=1.0, arrivals="poisson")


def size(scenario: Scenario, requests: Requests | None = None, *, explain: bool = True) -> Plan:
    """Run the stages up to memory and step time: whether one replica starts at all.

    Without `explain` the memory plan has neither formulas nor remedies, which a search can do without.
    """
    model, gpu = scenario.model_shape, scenario.gpu_spec
    requests = draw(scenario) if requests is None else requests
    prompt, output = mean_lengths(requests, scenario.max_model_len)
    memory = plan_memory(
        model,
        gpu,
        scenario.engine_settings,
        scenario.parallelism,
        max_model_len=scenario.max_model_len,
        weight_dtype=scenario.weight_dtype,
        kv_cache_dtype=scenario.kv_cache_dtype,
        mean_sequence_tokens=prompt + output / 2,
        shared_prefix_tokens=shared_tokens(requests, scenario.max_model_len),
        num_shared_prefixes=max(scenario.num_prefix_groups, len(np.unique(requests.prefix_group))),
        draft_model=scenario.draft_shape,
        occupied_bytes=scenario.occupied_gib * GIB,
        explain=explain,
    )
    ranks = scenario.attention_data_parallel_size  # the scheduler's limits are over all ranks, memory is of one
    engine = dataclasses.replace(
        scenario.engine_settings,
        max_num_seqs=memory.max_num_seqs * ranks,
        max_num_batched_tokens=memory.max_num_batched_tokens * ranks,
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
            kv_cache_dtype=kv_cache_type(model, engine, scenario.weight_dtype, scenario.kv_cache_dtype),
            max_tokens=ranks
            * max(memory.max_num_batched_tokens, memory.max_num_seqs * (1 + engine.num_speculative_tokens)),
            draft_model=scenario.draft_shape,
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


def mean_lengths(requests: Requests, max_model_len: int) -> tuple[float, float]:
    """Mean prompt and output tokens of the requests that the context admits; of all, if it admits none. [tokens]"""
    fits = requests.prompt_tokens < max_model_len
    kept = fits if fits.any() else ~fits
    return float(requests.prompt_tokens[kept].mean()), float(requests.output_tokens[kept].mean())


def shared_tokens(requests: Requests, max_model_len: int) -> int:
    """Tokens that a mean request has in common with others of its group: held once where prefixes are cached. [tokens]

    A prompt shorter than the common one shares only what it has.
    """
    fits = requests.prompt_tokens < max_model_len
    shared = np.where(requests.prefix_group >= 0, requests.prefix_tokens, 0)
    return round(float(shared[fits if fits.any() else ~fits].mean()))


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
    limits, ranks = sized.memory.limits(), sized.scenario.attention_data_parallel_size
    if ranks > 1:  # memory is that of one attention rank; requests are dealt to all of them evenly
        limits = dataclasses.replace(
            limits,
            max_num_seqs=limits.max_num_seqs * ranks,
            max_num_batched_tokens=limits.max_num_batched_tokens * ranks,
            num_kv_blocks=limits.num_kv_blocks * ranks,
        )
    return Replica(engine=sized.engine, limits=limits, step_time=sized.step_time)


def _open(requests: Requests) -> Requests:
    """The same requests as an open loop, so that a rate can be imposed."""
    if requests.closed_loop_users == 0 and len(requests) > 1 and requests.arrival_s[-1] > 0:
        return requests
    gaps = np.random.default_rng(0).exponential(size=len(requests))
    return dataclasses.replace(requests, arrival_s=np.cumsum(gaps), closed_loop_users=0)


def gpu_price(scenario: Scenario) -> tuple[float, str]:
    """Price of one GPU-hour and where it comes from. [USD/h]"""
    if scenario.usd_per_gpu_hour is not None:
        return scenario.usd_per_gpu_hour, "entered by hand"
    price = scenario.gpu_spec.usd_per_hour_typical
    if price is not None:
        return price, scenario.gpu_spec.price_source
    return DEFAULT_PRICE_USD_PER_HOUR, "no price known: 2 USD assumed, enter your own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a service gets done: finished requests per second, over the month and at the peak, and their mean lengths.

    An open loop offers its rate; what is turned away, left by its client or beyond the throughput is not
    finished. Over the month those are lost whom even an all but idle replica loses, and no more is finished
    than at the peak. Closed loops and bursts are taken at the rate that they reach.
    """

    mean_rps: float
    peak_rps: float
    mean_prompt_tokens: float
    mean_output_tokens: float


def served(scenario: Scenario, fleet: Deployment, prompt: float, output: float) -> Served:
    """What a fleet finishes of requests of these mean lengths; where not all, those of the finished ones count."""
    metrics = fleet.metrics
    reached = metrics.requests_per_s
    mean = peak = reached
    complete = metrics.lost_fraction <= NEGLIGIBLE
    if scenario.is_open_loop:
        offered = scenario.peak_rate_rps
        peak = offered * (1 - metrics.lost_fraction)
        if metrics.verdict != "stable" or offered > fleet.num_serving * fleet.curve.capacity_rps:
            peak = min(peak, reached)
        idle = fleet.curve.points[0].metrics if fleet.curve.points else metrics
        mean = min(scenario.mean_rate_rps * (1 - idle.lost_fraction), peak)
        complete = peak >= offered * (1 - NEGLIGIBLE)
    if not complete and reached > 0:
        output = metrics.output_tokens_per_s / reached
        prompt = metrics.total_tokens_per_s / reached - output
    return Served(mean_rps=mean, peak_rps=peak, mean_prompt_tokens=prompt, mean_output_tokens=output)


def price_plan(base: Plan, num_gpus: int, work: Served) -> CostPlan:
    """Work out the bill for the requests that are finished."""
    scenario = base.scenario
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
    return cost_plan(
        num_gpus=num_gpus,
        usd_per_gpu_hour=price,
        price_source=source,
        hours_per_month=scenario.hours_per_month,
        mean_rate_rps=work.mean_rps,
        peak_rate_rps=work.peak_rps,
        mean_prompt_tokens=work.mean_prompt_tokens,
        mean_output_tokens=work.mean_output_tokens,
        api=api,
        offered_rate_rps=scenario.mean_rate_rps if scenario.is_open_loop else None,
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
    return {key: band(quantity, is_moe=model.is_moe, engine_family=engine.family) for key, quantity in names.items()}


def slo_probability(done: Plan, metrics: ServingMetrics) -> float:
    """Chance that both targets hold, given our error: the smaller of the two, since they fail together.

    0 when more requests are turned away or left than may miss the targets, however fast the others are.
    """
    scenario = done.scenario
    if metrics.lost_fraction > 1 - scenario.target_quantile:
        return 0.0
    chances = (
        done.bands["ttft"].probability_below(metrics.ttft_s.at(scenario.target_quantile), scenario.ttft_target_s),
        done.bands["tpot"].probability_below(metrics.tpot_s.at(scenario.target_quantile), scenario.tpot_target_s),
    )
    known = [chance for chance in chances if not math.isnan(chance)]
    return min(known) if known else math.nan
