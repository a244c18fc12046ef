"""The Plan: every stage's result, with the headline, reasons and findings made from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.answer.confidence import Band
from planner.answer.finding import Finding
from planner.answer.kernels import KernelNote
from planner.cost import CostPlan
from planner.inputs import Batching, EngineSettings, Gpu, KvReservation
from planner.memory import MemoryPlan
from planner.model import ModelShape
from planner.scenario import Scenario
from planner.service import LoadCurve, PolicyOutcome, Pools, ServingMetrics
from planner.simulation import SimulationResult
from planner.step_time import StepTimeTable

ANSWERED = "Share answered"  # a reason for GPUs where no latency target is set, but requests may be lost


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLink:
    """How many GPUs one reason alone would need, and why."""

    reason: str
    gpus: float  # inf: no number is enough
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The most that the given GPUs take within the targets.

    `load` is requests per second of an open loop, users of a closed loop, requests of a burst: 0 where even the least
    misses the targets (the plan then shows the traffic as entered), infinite where nothing limits a burst.
    `gives_first` is what more load misses first: TTFT, TPOT, ITL, E2E, throughput or lost requests; `held_up_by` what
    requests then wait for. `longest_prompt_tokens` is the longest prompt that meets the targets on an idle replica.
    """

    load: float
    gives_first: str
    held_up_by: str
    longest_prompt_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """One target that is on, and what the plan makes of it: `figure_s` at the share of requests asked for (NaN: none).

    `field` is the Scenario's field, `name` TTFT, TPOT, ITL or E2E; both times in seconds.
    """

    field: str
    name: str
    figure_s: float
    limit_s: float

    @property
    def is_missed(self) -> bool:
        """Whether the figure is above its limit."""
        return self.figure_s > self.limit_s

    @property
    def margin(self) -> float:
        """Room below the limit as a share of it; negative where the target is missed."""
        return 1 - self.figure_s / self.limit_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Sure:
    """The GPUs at which the chance that every target holds reaches a share; None where no number of replicas does."""

    share: float
    num_gpus: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the plan holds its targets, by how much, and how sure that is.

    `state` is "sure" (the chance is 90 % or more), "likely" (66 %), "unsure" or "miss" (the simulation misses a
    target). `probability` is the chance given our error, NaN where nothing was measured: of several targets that of the
    one most in doubt, so that all hold at once can be less likely; `next_gpus` and `next_probability` are what one
    more replica makes of them, or one of each kind where one alone bears no more.
    `sure` has the GPUs at 50, 90 and 95 %; empty for a burst. `holds_to` is the load that these GPUs hold the targets
    up to, `sure_to` that at which the chance is 90 %, in words.
    `evidence` says what the kernel times rest on, `narrows` which target one measurement would tell most about,
    `measurement` is the command that takes it.
    """

    state: str
    text: str
    targets: tuple[Reached, ...]
    probability: float
    next_gpus: int
    next_probability: float
    sure: tuple[Sure, ...]
    holds_to: str
    sure_to: str
    evidence: str
    narrows: str
    measurement: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """The whole answer. Stages that cannot run because the engine does not start are None.

    `num_replicas` is what the plan buys, `replicas_for_slo` what the targets need (None: no number of
    replicas meets them). `slo_met` comes from simulating the bought fleet at the peak rate.
    `chain` explains the GPU count. `bands` hold our measured error for TTFT, TPOT, throughput and KV
    pool; `slo_probability` is the chance, given that error, that every target holds (NaN when unknown).
    `verdict` is None where the engine does not start.
    `taken` answers "what can my GPUs take"; the scenario then has that load. `is_traced` says that a recorded trace was
    replayed, which no link carries: the scenario's lengths are then a fit of it. `kernels` says how the engine runs the
    weights where that is not natively.
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
    verdict: Verdict | None = None
    taken: Taken | None = None
    is_traced: bool = False
    kernels: KernelNote | None = None
    pools: Pools | None = None  # prefill and decode on separate replicas


def reached(scenario: Scenario, metrics: ServingMetrics) -> tuple[Reached, ...]:
    """Every target that is on beside what these metrics say of it."""
    return tuple(
        Reached(
            field=target.field,
            name=target.name,
            figure_s=getattr(metrics, target.latency).at(scenario.target_quantile),
            limit_s=target.limit_s,
        )
        for target in scenario.targets
    )


def target_label(name: str) -> str:
    """A target as people read it: that on ITL is on the longest gap of each request, not on all gaps."""
    return "longest gap" if name == "ITL" else name


def offered_rps(done: Plan) -> float:
    """Requests per second at the peak; for a closed loop or a burst, the rate that finishes. [req/s]"""
    if done.scenario.is_open_loop or done.metrics is None:
        return done.scenario.peak_rate_rps
    return done.metrics.requests_per_s


def serving_replicas(done: Plan) -> int:
    """Replicas that share the load: those bought less the spares, or all of them where the user fixes the number."""
    if done.pools is not None:
        return done.pools.num_serving
    spare = done.scenario.spare_replicas if done.scenario.fixed_replicas is None else 0
    return max(1, done.num_replicas - spare)


def fit_on_rank(done: Plan) -> float:
    """Sequences of this traffic that fit in the KV pool of one attention rank, the way this engine reserves it.

    Paged: the mean tokens written. Output limit reserved: prompt + limit, in whole blocks. Model limit reserved, or
    static batches: max_model_len each.
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
    """Sequences of this traffic running at once on one attention rank: what fits, at most max_num_seqs."""
    if done.engine.batching is Batching.SINGLE:
        return min(1.0, fit_on_rank(done))
    return min(fit_on_rank(done), float(done.memory.max_num_seqs))


def run_at_once(done: Plan) -> float:
    """Sequences of this traffic running at once on one replica, all attention ranks together."""
    return run_on_rank(done) * done.scenario.attention_data_parallel_size


def typical_step(done: Plan) -> dict[str, int]:
    """A typical step of one replica at the peak: mean sequences running, mean context, a chunk of the mean prompt."""
    running = 1
    if done.result is not None and len(done.result.replica):
        replicas = int(done.result.replica.max()) + 1 if done.pools is None else done.pools.num_decode
        running = max(1, round(done.result.mean_running / replicas))
    chunk = max(1, min((done.engine.max_num_batched_tokens or 0) - running, round(done.mean_prompt_tokens)))
    return {
        "running": running,
        "context_tokens": max(1, round(done.mean_prompt_tokens + done.mean_output_tokens / 2)),
        "chunk_tokens": chunk,
    }
