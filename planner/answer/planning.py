"""`plan(scenario)` runs every stage and returns one frozen Plan.

Pages, command line and notebooks all call it, so they cannot disagree.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import partial

import numpy as np

from planner.answer.advice import findings
from planner.answer.confidence import bands_of, measured_of, memory_bands
from planner.answer.kernels import kernel_note
from planner.answer.outcome import Plan, Taken
from planner.answer.pricing import priced
from planner.answer.wording import headline
from planner.errors import Infeasible
from planner.inputs import EngineSettings, Gpu
from planner.memory import MemoryPlan, kv_cache_type, plan_memory
from planner.model import ModelShape
from planner.scenario import Scenario
from planner.service import (
    MOST_REQUESTS,
    Fleet,
    PolicyOutcome,
    Pools,
    Replica,
    compare_policies,
    deploy,
    deploy_most,
    deploy_most_pools,
    deploy_pools,
    longest_prompt_tokens,
    replicas_for_targets,
    roomy,
    serve_lone,
    share_of_replica,
)
from planner.simulation import SimulationResult
from planner.step_time import RankShare, StepTimeTable, step_time_table
from planner.units import GIB
from planner.workload import Requests, draw, fitted, mean_lengths, shared_tokens


def plan(
    scenario: Scenario,
    *,
    requests: Requests | None = None,
    most_requests: int = MOST_REQUESTS,
    with_policies: bool = True,
) -> Plan:
    """The whole plan of a scenario.

    Parameters
    ----------
    scenario : Scenario
        All inputs.
    requests : Requests, optional
        A trace to replay instead of drawn requests, with its own times and lengths.
    most_requests : int
        Simulated for each number of replicas that is tried.
    with_policies : bool
        Whether to compare the batching policies too, on which no other figure depends.

    Returns
    -------
    Plan
        Deterministic: the same scenario and seed give the same plan.
    """
    trace = requests
    if trace is not None:
        scenario = fitted(scenario, trace)
    requests = draw(scenario) if trace is None else trace
    base = dataclasses.replace(size(scenario, requests), is_traced=trace is not None)
    if not base.fits:
        return base
    replica = replica_of(base)
    gpus_per_replica = scenario.parallelism.gpus_per_replica
    pools = None
    if scenario.asks == "take":
        base, requests, fleet, pools = _taking(base, replica, requests, trace, most_requests)
        scenario = base.scenario
    elif scenario.is_disaggregated:
        pooled = deploy_pools(scenario, replica, requests, _kv_bytes(base), trace, most_requests)
        fleet, pools = pooled.fleet, pooled.pools
    else:
        fleet = deploy(scenario, replica, requests, trace, most_requests)
    metrics, met, needed = fleet.metrics, fleet.holds(scenario), fleet.replicas_for_slo
    if pools is None:
        needed = replicas_for_targets(scenario, replica, requests, fleet, trace, most_requests, met=met)
    policies: tuple[PolicyOutcome, ...] = ()
    if with_policies:
        share = share_of_replica(scenario, requests, fleet.num_serving)
        policies = compare_policies(replica, share, scenario.service_level)
    return priced(
        dataclasses.replace(
            base,
            num_replicas=fleet.num_replicas,
            num_gpus=fleet.num_replicas * gpus_per_replica,
            replicas_for_slo=needed,
            metrics=metrics,
            result=fleet.result,
            curve=fleet.curve,
            policies=policies,
            slo_met=met,
            pools=pools,
        )
    )


def _kv_bytes(sized: Plan) -> float:
    """KV cache of one token over all GPUs of a replica. [bytes]"""
    return sized.memory.kv_bytes_per_token * sized.scenario.parallelism.gpus_per_replica


def _taking(
    base: Plan, replica: Replica, requests: Requests, trace: Requests | None, most_requests: int
) -> tuple[Plan, Requests, Fleet, Pools | None]:
    """A sized plan at the most load that its replicas take, the requests and the fleet there."""
    asked, most_tokens, pools = base.scenario, base.memory.longest_context_tokens, None
    wide = roomy(replica, most_tokens)
    serve: Callable[[Requests], SimulationResult] = wide.run
    if asked.is_disaggregated:
        took, pools = deploy_most_pools(asked, replica, requests, _kv_bytes(base), trace, most_requests)
        serve = partial(serve_lone, asked, wide, _kv_bytes(base))
    else:
        took = deploy_most(asked, replica, requests, trace, most_requests)
    longest = longest_prompt_tokens(asked, serve, requests, most_tokens, base.mean_output_tokens)
    taken = Taken(
        load=took.most.load,
        gives_first=took.most.gives_first,
        held_up_by=took.most.held_up_by,
        longest_prompt_tokens=longest,
    )
    return dataclasses.replace(base, scenario=took.scenario, taken=taken), took.requests, took.fleet, pools


def size(scenario: Scenario, requests: Requests | None = None, *, explain: bool = True) -> Plan:
    """A plan up to memory and step time: whether one replica starts at all.

    Without `explain` the memory plan has no formulas and no remedies, which a search does not need.
    """
    model, gpu = scenario.model_shape, scenario.gpu_spec
    requests = draw(scenario) if requests is None else requests
    prompt, output = mean_lengths(requests, scenario.max_model_len)
    memory = memory_of(scenario, requests, explain=explain)
    kernels = kernel_note(scenario)
    engine = _resolved_engine(scenario, memory)
    sized = Plan(
        scenario=scenario,
        model=model,
        gpu=gpu,
        engine=engine,
        memory=memory,
        step_time=_step_times(scenario, model, gpu, engine, memory) if memory.starts else None,
        num_replicas=0,
        num_gpus=0,
        replicas_for_slo=None,
        metrics=None,
        result=None,
        curve=None,
        policies=(),
        cost=None,
        chain=(),
        findings=findings(
            scenario, memory, None, None, mean_prompt_tokens=prompt, mean_output_tokens=output, kernels=kernels
        ),
        headline="",
        reasons=memory.remedies,
        fits=memory.starts,
        slo_met=False,
        mean_prompt_tokens=prompt,
        mean_output_tokens=output,
        bands=memory_bands(
            bands_of(model, gpu, engine, scenario.weight_dtype, scenario.target_quantile, measured_of(scenario)),
            scenario.printed_memory,
        ),
        slo_probability=math.nan,
        kernels=kernels,
    )
    return sized if memory.starts else dataclasses.replace(sized, headline=headline(sized))


def _resolved_engine(scenario: Scenario, memory: MemoryPlan) -> EngineSettings:
    """The engine at the limits that its memory gives, which are of one attention rank: a replica has those of all."""
    ranks = scenario.attention_data_parallel_size
    return dataclasses.replace(
        scenario.engine_settings,
        max_num_seqs=memory.max_num_seqs * ranks,
        max_num_batched_tokens=memory.max_num_batched_tokens * ranks,
        gpu_memory_utilization=memory.gpu_memory_utilization,
        block_size=memory.block_size,
    )


def _step_times(
    scenario: Scenario, model: ModelShape, gpu: Gpu, engine: EngineSettings, memory: MemoryPlan
) -> StepTimeTable:
    """Step times of a replica, up to its largest step."""
    replica = RankShare(
        model=model,
        gpu=gpu,
        engine=engine,
        parallelism=scenario.parallelism,
        weight_dtype=scenario.weight_dtype,
        kv_cache_dtype=kv_cache_type(model, engine, scenario.weight_dtype, scenario.kv_cache_dtype),
        draft_model=scenario.draft_shape,
        scales=scenario.step_scales,
    )
    decoded = memory.max_num_seqs * (1 + engine.num_speculative_tokens)
    return step_time_table(replica, scenario.attention_data_parallel_size * max(memory.max_num_batched_tokens, decoded))


def memory_of(scenario: Scenario, requests: Requests, *, explain: bool = True) -> MemoryPlan:
    """The memory of one replica under these requests; without `explain` no formulas and no remedies."""
    prompt, output = mean_lengths(requests, scenario.max_model_len)
    return plan_memory(
        scenario.model_shape,
        scenario.gpu_spec,
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
        printed=scenario.printed_memory,
        explain=explain,
    )


def replica_of(sized: Plan) -> Replica:
    """What the simulator needs to know about one replica of a sized plan.

    Raises
    ------
    Infeasible
        When the engine does not start.
    """
    if sized.step_time is None:
        raise Infeasible(sized.memory.refusal, sized.memory.remedies)
    limits, ranks = sized.memory.limits(), sized.scenario.attention_data_parallel_size
    if ranks > 1:  # memory is per attention rank; requests are split evenly over the ranks
        limits = dataclasses.replace(
            limits,
            max_num_seqs=limits.max_num_seqs * ranks,
            max_num_batched_tokens=limits.max_num_batched_tokens * ranks,
            num_kv_blocks=limits.num_kv_blocks * ranks,
        )
    return Replica(engine=sized.engine, limits=limits, step_time=sized.step_time)
