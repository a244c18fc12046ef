"""The answer: the Plan with its chain of reasons, its headline and its sentences, all made from numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.advice import Finding
from planner.confidence import Band
from planner.cost import CostPlan
from planner.engine import Batching, EngineSettings, KvReservation
from planner.hardware import Gpu
from planner.memory_plan import MemoryPlan
from planner.metrics import ServingMetrics
from planner.model import ModelShape
from planner.policies import PolicyOutcome
from planner.saturation import LoadCurve
from planner.scenario import Scenario
from planner.simulation.records import SimulationResult
from planner.sizing.verdict import (
    OOM,
    PARTLY_ON_CPU,
    REFUSED_FREE_MEMORY,
    REFUSED_LENGTH,
    REFUSED_NO_BLOCKS,
    REFUSED_STATES,
)
from planner.step_time import StepTimeTable
from planner.units import GIB, format_duration, format_number, format_percent, format_usd


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


def offered_rps(done: Plan) -> float:
    """Requests per second at the peak; of a closed loop or a burst, what its clients get done. [req/s]"""
    if done.scenario.is_open_loop or done.metrics is None:
        return done.scenario.peak_rate_rps
    return done.metrics.requests_per_s


def serving_replicas(done: Plan) -> int:
    """Replicas that share the load: those bought, less the spare ones; where the user fixes the number, all serve."""
    spare = done.scenario.spare_replicas if done.scenario.num_replicas is None else 0
    return max(1, done.num_replicas - spare)


def fit_on_rank(done: Plan) -> float:
    """Sequences of this traffic that the KV pool of one attention rank holds, as this engine reserves it.

    Paged: what a sequence has written on average. With the output limit reserved: prompt + limit, in whole
    blocks. With the model's limit reserved, or in static batches: the maximum for each.
    """
    memory, engine = done.memory, done.engine
    if engine.kv_reservation is KvReservation.MODEL_LIMIT:
        return memory.typical_concurrency_reserved
    if engine.kv_reservation is KvReservation.OUTPUT_LIMIT:
        limit = done.scenario.output_limit_tokens or memory.max_model_len
        tokens = min(done.mean_prompt_tokens + limit, memory.max_model_len)
        return memory.num_kv_blocks / (math.ceil(tokens / memory.block_size) + memory.fixed_blocks_per_sequence)
    return memory.typical_concurrency_paged


def run_on_rank(done: Plan) -> float:
    """Sequences of this traffic that one attention rank runs at once: what its pool holds, or the scheduler's limit."""
    if done.engine.batching is Batching.SINGLE:
        return min(1.0, fit_on_rank(done))
    return min(fit_on_rank(done), float(done.memory.max_num_seqs))


def run_at_once(done: Plan) -> float:
    """Sequences of this traffic that one replica runs at once, over all its attention ranks."""
    return run_on_rank(done) * done.scenario.attention_data_parallel_size


def refusal_in_short(memory: MemoryPlan) -> str:
    """Why the engine does not start, in a few words; `memory.refusal` has the engine's own."""
    gpu, weights = memory.total_bytes / GIB, memory.weights_bytes / GIB
    longest = memory.longest_context_tokens
    return {
        OOM: f"{weights:.1f} GiB of weights do not fit into {gpu:.1f} GiB",
        REFUSED_NO_BLOCKS: f"weights and runtime leave no room for the KV cache ({-memory.kv_pool_bytes / GIB:.1f} GiB "
        "short)"
        if memory.kv_pool_bytes < 0
        else "weights and runtime leave no room for the KV cache",
        REFUSED_LENGTH: f"the KV cache left over holds one sequence of {longest:,} tokens, not of "
        f"{memory.max_model_len:,}",
        REFUSED_STATES: f"{memory.max_num_seqs:,} sequences need a state each, and there is room for "
        f"{memory.logged_kv_blocks:,}",
        PARTLY_ON_CPU: f"{-memory.free_bytes / GIB:.1f} GiB too much, so that part of it runs on the CPU",
        REFUSED_FREE_MEMORY: f"other processes hold {memory.occupied_bytes / GIB:.1f} of its {gpu:.1f} GiB",
    }.get(memory.outcome, memory.refusal.rstrip("."))


def chain(done: Plan) -> tuple[ChainLink, ...]:
    """Explain the GPU count: what each reason alone would need, and which one decides.

    Memory: bytes of KV cache that the running sequences hold by Little's law. Prefill and decode: busy
    seconds of each per request × rate. Targets: rate ÷ the highest rate that meets them.
    """
    scenario, metrics, curve = done.scenario, done.metrics, done.curve
    per_replica = scenario.parallelism.gpus_per_replica
    if metrics is None or curve is None or done.step_time is None:
        return ()
    rate = offered_rps(done)
    links = [
        ChainLink(
            reason="Weights alone",
            gpus=float(per_replica),
            detail=f"one replica of {per_replica} GPU{'s' if per_replica > 1 else ''} holds the weights",
        )
    ]
    held = metrics.e2e_s.mean * rate if math.isfinite(metrics.e2e_s.mean) else 0.0  # NaN: nothing was finished
    fit = fit_on_rank(done) * scenario.attention_data_parallel_size
    by_kv = held / max(fit, 1e-9)
    links.append(
        ChainLink(
            reason="KV cache",
            gpus=math.ceil(max(by_kv, 1e-9)) * per_replica,
            detail=f"{format_number(held)} sequences in flight (rate × time in system), "
            f"{format_number(fit)} fit on one replica",
        )
    )
    by_work = rate / curve.capacity_rps if curve.capacity_rps else math.inf
    links.append(
        ChainLink(
            reason="Throughput",
            gpus=math.ceil(by_work) * per_replica if math.isfinite(by_work) else math.inf,
            detail=f"{format_number(rate)} req/s {'at the peak' if scenario.is_open_loop else 'reached'}, one replica "
            f"finishes {format_number(curve.capacity_rps)} with a full queue",
        )
    )
    needed = done.replicas_for_slo
    links.append(
        ChainLink(
            reason="Latency target",
            gpus=needed * per_replica if needed is not None else math.inf,
            detail=_target_detail(curve, needed),
        )
    )
    if scenario.spare_replicas and scenario.num_replicas is None:
        links.append(
            ChainLink(
                reason="Failure reserve",
                gpus=done.num_replicas * per_replica,
                detail=f"{scenario.spare_replicas} more so that the targets hold when that many fail",
            )
        )
    return tuple(links)


def _target_detail(curve: LoadCurve, needed: int | None) -> str:
    if needed is None:
        return "no number of replicas holds the targets"
    if curve.slo_rate_rps:
        return f"one replica holds the targets up to {format_number(curve.slo_rate_rps)} req/s"
    return f"bursts overrun a single replica at any mean rate; {needed} share them"


def headline(done: Plan) -> str:
    """The answer in one sentence that a team lead can repeat."""
    scenario, memory = done.scenario, done.memory
    model = done.model.name.rsplit("/", 1)[-1]
    if not done.fits:
        cure = f"; {' or '.join(memory.remedies[:2])} would do" if memory.remedies else ""
        gpus = scenario.parallelism.gpus_per_replica
        verb = "does not fit wholly on" if memory.outcome == PARTLY_ON_CPU else "does not start on"
        return f"{model} {verb} {gpus} × {done.gpu.name}: {refusal_in_short(memory)}{cure}."
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
    turned_away = done.metrics.num_rejected / max(1, done.metrics.num_requests)
    because = f", {format_percent(turned_away)} are rejected" if turned_away >= 0.01 else ""
    return (
        f"{done.num_gpus} × {done.gpu.name} cannot hold the targets for {who} of {model}: {numbers}; "
        f"{format_percent(done.metrics.slo_attainment)} of requests meet them{because}."
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
    if done.curve.slo_rate_rps and done.scenario.is_open_loop:
        room = done.curve.slo_rate_rps * serving_replicas(done)
        spare = room / done.scenario.peak_rate_rps - 1
        if spare > 0:
            said.append(
                f"The fleet holds the targets up to about {format_number(room)} req/s, {format_percent(spare)} "
                "more than the peak."
            )
    elif done.replicas_for_slo is None and done.scenario.is_open_loop:
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
