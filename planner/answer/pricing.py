"""A simulated plan with its bill, and the same plan at other prices: arithmetic, no simulation."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from planner.answer.advice import findings
from planner.answer.chain import chain
from planner.answer.outcome import Plan, serving_replicas, typical_step
from planner.answer.verdict import probability, verdict
from planner.answer.wording import headline, reasons
from planner.cost import CostPlan, PricedFleet, Served, output_weight, price_plan, price_policies, served
from planner.errors import InvalidInput
from planner.model import ModelShape
from planner.scenario import Scenario, sought, unsimulated_names
from planner.service import LoadCurve, ServingMetrics
from planner.units import format_duration, format_number


@dataclass(frozen=True, slots=True)
class _Fleet:
    metrics: ServingMetrics
    curve: LoadCurve
    num_serving: int


def reprice(done: Plan, scenario: Scenario) -> Plan:
    """A finished plan at other prices.

    Parameters
    ----------
    done : Plan
        As `plan` gives it.
    scenario : Scenario
        Differs from that of the plan only in prices and the plan's name. Where the plan says what its GPUs take, the
        load may differ too, and stays that of the plan.

    Returns
    -------
    Plan
        What `plan(scenario)` would say, from the run that is there.

    Raises
    ------
    InvalidInput
        Names a field that differs and that the simulation depends on.
    """
    if done.taken is not None and scenario.asks == "take":
        scenario = scenario.replace(**{name: getattr(done.scenario, name) for name in sought(scenario)})
    if scenario == done.scenario:
        return done
    for item in dataclasses.fields(scenario):
        if item.name not in unsimulated_names() and getattr(scenario, item.name) != getattr(done.scenario, item.name):
            raise InvalidInput(
                item.name, getattr(scenario, item.name), f"{getattr(done.scenario, item.name)} as planned"
            )
    same = dataclasses.replace(done, scenario=scenario, gpu=scenario.gpu_spec)
    return priced(same) if same.metrics is not None else same


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the bill of a plan rests on besides prices, all of it known once the plan is simulated."""

    num_gpus: int
    served: Served
    fleet: PricedFleet


def work_of(done: Plan) -> Work:
    """What the bill of a simulated plan rests on."""
    metrics, curve, serving = done.metrics, done.curve, serving_replicas(done)
    assert metrics is not None
    assert curve is not None
    assert done.step_time is not None
    finished = served(done.scenario, _Fleet(metrics, curve, serving), done.mean_prompt_tokens, done.mean_output_tokens)
    fleet = PricedFleet(
        num_serving=serving,
        at_targets_rps=_at_targets_rps(done),
        capacity_rps=curve.capacity_rps,
        output_weight=output_weight(done.step_time, **typical_step(done)),
        busy=tuple((point.rate_rps, point.metrics.busy_utilization) for point in curve.points),
        prefix_hit_fraction=metrics.prefix_hit_fraction,
        num_spare=done.num_replicas - serving,
        kinds=(1,) if done.pools is None else (done.pools.num_prefill, done.pools.num_decode),
    )
    return Work(num_gpus=done.num_gpus, served=finished, fleet=fleet)


def bill(scenario: Scenario, model: ModelShape, work: Work) -> CostPlan:
    """The bill of simulated work at a scenario's prices: arithmetic."""
    return price_plan(scenario, model, work.num_gpus, work.served, work.fleet)


def priced(done: Plan) -> Plan:
    """A simulated plan with all that follows from prices: bill, findings, reasons, headline."""
    scenario, metrics = done.scenario, done.metrics
    assert metrics is not None
    assert done.step_time is not None
    cost = bill(scenario, done.model, work_of(done))
    notes = (*done.step_time.notes, *_pool_notes(done))
    per_replica = cost.usd_per_gpu_hour * scenario.parallelism.gpus_per_replica
    done = dataclasses.replace(
        done,
        policies=price_policies(done.policies, per_replica),
        cost=cost,
        findings=findings(
            scenario,
            done.memory,
            metrics,
            cost,
            mean_prompt_tokens=done.mean_prompt_tokens,
            mean_output_tokens=done.mean_output_tokens,
            notes=notes,
            kernels=done.kernels,
        ),
    )
    done = dataclasses.replace(done, chain=chain(done), slo_probability=probability(done))
    return dataclasses.replace(done, headline=headline(done), reasons=reasons(done), verdict=verdict(done))


def _pool_notes(done: Plan) -> tuple[str, ...]:
    """What prefill and decode on separate replicas rest on."""
    pools = done.pools
    if pools is None:
        return ()
    bandwidth = pools.transfer_bytes_per_s / done.scenario.parallelism.gpus_per_replica / 1e9
    return (
        f"the KV cache of a prompt travels {format_duration(pools.mean_transfer_s)} on average, "
        f"{format_number(pools.kv_bytes_per_token / 1e3)} kB a token at {format_number(bandwidth)} GB/s per GPU; "
        "transfers do not queue, states of hybrid models are not counted, and both kinds of replicas have the same "
        "GPUs and split",
    )


def _at_targets_rps(done: Plan) -> float:
    """The most that the serving replicas finish within the targets. [req/s]"""
    assert done.curve is not None
    assert done.metrics is not None
    if done.scenario.is_open_loop:
        return done.curve.slo_rate_rps * serving_replicas(done)
    return done.metrics.requests_per_s if done.slo_met else 0.0
