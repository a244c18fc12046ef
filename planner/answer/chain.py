"""The chain of reasons: how many GPUs each reason alone would need."""

from __future__ import annotations

import math

from planner.answer.outcome import ANSWERED, ChainLink, Plan, fit_on_rank, offered_rps, serving_replicas
from planner.answer.wording import clients_in_words
from planner.scenario import Scenario
from planner.service import STEADY_SHARE, Pools
from planner.units import counted, format_number, format_percent

LATENCY = "Latency target"


def chain(done: Plan) -> tuple[ChainLink, ...]:
    """The GPUs that each reason alone would need, with its figures; the largest decides.

    KV cache: sequences running at once by Little's law (rate × time from admission to the last token; a queued
    request holds no cache). Throughput: rate ÷ 97 % of the throughput of a saturated replica, beyond which no plan
    loads one. Targets: the fewest replicas that meet them; without targets, those that answer enough of the requests.
    Clients of a closed loop or a burst wait their turn, so only the targets can need more than one replica.
    """
    scenario, metrics, curve = done.scenario, done.metrics, done.curve
    per_replica = scenario.parallelism.gpus_per_replica
    if metrics is None or curve is None or done.step_time is None:
        return ()
    if done.pools is not None:
        return _pool_chain(done, done.pools)
    rate, serving = offered_rps(done), serving_replicas(done)
    # A simulated fleet that meets the targets is enough, whatever the means say.
    most = float(done.replicas_for_slo or math.inf)
    if not scenario.is_open_loop:
        most = min(most, serving)
    served_s = metrics.e2e_s.mean - metrics.wait_s.mean
    held = served_s * rate if math.isfinite(served_s) else 0.0  # NaN: nothing was finished
    fit = fit_on_rank(done) * scenario.attention_data_parallel_size
    by_kv = min(math.ceil(max(held / max(fit, 1e-9), 1e-9)), most)
    links = [
        ChainLink(
            reason="Weights alone",
            gpus=float(per_replica),
            detail="one replica holds the weights",
        ),
        ChainLink(
            reason="KV cache",
            gpus=by_kv * per_replica,
            detail=f"{counted(held, 'sequence')} running at once (rate × time from admission to last token), one "
            f"replica holds {format_number(fit)}",
        ),
        _throughput_link(done, rate, most),
        *_last_word(done),
    ]
    if scenario.spare_replicas and scenario.fixed_replicas is None:
        links.append(
            ChainLink(
                reason="Failure reserve",
                gpus=done.num_replicas * per_replica,
                detail=_reserve(done),
            )
        )
    return tuple(links)


def _reserve(done: Plan) -> str:
    scenario = done.scenario
    spare = counted(scenario.spare_replicas, "spare replica")
    if done.replicas_for_slo is None:
        return spare
    what = "the targets hold" if scenario.targets else "the others keep up"
    fail = "one fails" if scenario.spare_replicas == 1 else f"{scenario.spare_replicas} fail"
    return f"{spare}, so {what} when {fail}"


def _pool_chain(done: Plan, pools: Pools) -> tuple[ChainLink, ...]:
    """The same for prefill and decode on separate replicas; both kinds are needed, so their GPUs add up."""
    scenario, per_replica, rate = done.scenario, done.scenario.parallelism.gpus_per_replica, offered_rps(done)
    carry = pools.least(rate if scenario.is_open_loop else 0.0)
    links = [
        ChainLink(
            reason="Weights alone",
            gpus=2.0 * per_replica,
            detail="one prefill and one decode replica, each with all the weights",
        ),
        ChainLink(
            reason="Throughput",
            gpus=float(carry * per_replica),
            detail=f"{format_number(rate)} req/s at the peak; a prefill replica finishes "
            f"{format_number(pools.prefill_rps)}, a decode replica {format_number(pools.decode_rps)}",
        ),
    ]
    needed = done.replicas_for_slo
    detail = (
        f"these numbers of replicas {'miss the targets' if scenario.targets else 'lose too many requests'}"
        if scenario.fixes_pools
        else _none_holds(scenario)
    )
    if needed is not None:
        detail = (
            f"{counted(pools.num_prefill, 'prefill replica')} (busy {format_percent(pools.prefill_busy)}) and "
            f"{counted(pools.num_decode, 'decode replica')} (busy {format_percent(pools.decode_busy)})"
        )
    gpus = math.inf if needed is None else float(needed * per_replica)
    if scenario.targets or gpus > links[-1].gpus:
        links.append(ChainLink(reason=LATENCY if scenario.targets else ANSWERED, gpus=gpus, detail=detail))
    if done.num_replicas > pools.num_serving:
        spare = f"{counted(scenario.spare_replicas, 'spare replica')} of each kind"
        links.append(ChainLink(reason="Failure reserve", gpus=float(done.num_replicas * per_replica), detail=spare))
    return tuple(links)


def _throughput_link(done: Plan, rate: float, most: float) -> ChainLink:
    curve, per_replica = done.curve, done.scenario.parallelism.gpus_per_replica
    assert curve is not None
    full = curve.capacity_in_words()
    if curve.capacity_rps <= 0:
        return ChainLink(reason="Throughput", gpus=math.inf, detail="no request of this traffic fits on a replica")
    if not done.scenario.is_open_loop:
        reached = f"clients wait their turn: {format_number(rate)} req/s finish, a saturated replica finishes {full}"
        return ChainLink(reason="Throughput", gpus=float(per_replica), detail=reached)
    return ChainLink(
        reason="Throughput",
        gpus=min(curve.replicas_to_carry(rate), most) * per_replica,
        detail=f"{format_number(rate)} req/s at the peak, a saturated replica finishes {full} and is loaded to "
        f"{format_percent(STEADY_SHARE)} of that at most",
    )


def _last_word(done: Plan) -> list[ChainLink]:
    """The replicas that the simulation asks for: to meet the targets or, where none is set, to answer enough."""
    if done.scenario.targets:
        return [_target_link(done)]
    needed, scenario, curve = done.replicas_for_slo, done.scenario, done.curve
    assert curve is not None
    carry = curve.replicas_to_carry(scenario.peak_rate_rps) if scenario.is_open_loop else 1
    if needed is not None and needed <= carry:
        return []
    gpus = math.inf if needed is None else float(needed * scenario.parallelism.gpus_per_replica)
    share = format_percent(scenario.target_quantile)
    detail = _none_holds(scenario) if needed is None else f"{needed:,} replicas answer {share} of the requests"
    return [ChainLink(reason=ANSWERED, gpus=gpus, detail=detail)]


def _none_holds(scenario: Scenario) -> str:
    if scenario.targets:
        return "no number of replicas tried meets the targets"
    return f"no number of replicas tried answers {format_percent(scenario.target_quantile)} of the requests"


def _target_link(done: Plan) -> ChainLink:
    curve, needed, per_replica = done.curve, done.replicas_for_slo, done.scenario.parallelism.gpus_per_replica
    assert curve is not None
    alone = f"one replica meets the targets up to {curve.slo_rate_in_words()}"
    together = "1 replica meets the targets" if needed == 1 else f"{needed} replicas together meet the targets"
    if needed is None:
        return ChainLink(reason=LATENCY, gpus=math.inf, detail=_none_holds(done.scenario))
    if not done.scenario.is_open_loop:
        meet = "replica meets" if needed == 1 else "replicas meet"
        detail = f"{needed:,} {meet} the targets for {clients_in_words(done)}"
    elif curve.slo_rate_rps * needed >= done.scenario.peak_rate_rps * (1 - 1e-9):
        detail = alone
    elif curve.slo_rate_rps:
        detail = f"{together}; in the load sweep {alone}"
    else:
        detail = f"{together}; in the load sweep one replica alone misses them at every rate"
    return ChainLink(reason=LATENCY, gpus=float(needed * per_replica), detail=detail)
