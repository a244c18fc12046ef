"""Prefill and decode on separate replicas, with the KV cache sent from one to the other."""

from __future__ import annotations

import dataclasses

import numpy as np

from planner.arrays import Bytes, Floats, Ints
from planner.errors import InvalidInput, require_number
from planner.inputs import EngineSettings, Limits
from planner.simulation.records import ABANDONED, FINISHED, SimulationResult
from planner.simulation.router import simulate_fleet
from planner.step_time import StepTimeTable
from planner.workload import Requests

LINK_LATENCY_S = 1e-3  # estimate: from the request for a prompt's KV cache to its first byte


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Equal replicas that do one of the two jobs."""

    engine: EngineSettings
    limits: Limits
    step_time: StepTimeTable
    num_replicas: int = 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DisaggregatedRun:
    """The service as its users see it, and each pool on its own."""

    service: SimulationResult
    prefill: SimulationResult
    decode: SimulationResult | None  # None: every answer was a single token
    mean_transfer_s: float


def simulate_disaggregated(
    requests: Requests,
    prefill: Pool,
    decode: Pool,
    *,
    kv_bytes_per_token: float,
    link_bytes_per_s: float,
    link_latency_s: float = LINK_LATENCY_S,
    router: str = "round_robin",
    seed: int = 0,
) -> DisaggregatedRun:
    """Serve an open stream with disaggregated prefill.

    A request is prefilled in one pool, which emits its first token; its KV cache then travels
    (latency + prompt · bytes per token ÷ bandwidth, transfers do not queue); the other pool makes the
    remaining tokens. A request that is preempted there is computed anew there. Clients who lose
    patience leave the prefill pool at once; one whose whole answer takes too long keeps its place in the
    decode pool until that pool alone has taken as long.

    Parameters
    ----------
    requests : Requests
        Open loop.
    prefill, decode : Pool
        The two pools.
    kv_bytes_per_token : float
        KV cache of one token over all GPUs of a replica. [bytes]
    link_bytes_per_s, link_latency_s : float
        The link between two replicas. [bytes/s], [s]
    router, seed
        As for `simulate_fleet`, in both pools.

    Returns
    -------
    DisaggregatedRun
        `service` has the records of all requests; its sums and averages are those of both pools.
    """
    require_number("kv_bytes_per_token", kv_bytes_per_token, at_least=0)
    require_number("link_bytes_per_s", link_bytes_per_s, above=0)
    require_number("link_latency_s", link_latency_s, at_least=0)
    if requests.closed_loop_users:
        raise InvalidInput("arrivals", "closed", "an open loop")
    first = _run(prefill_part(requests), prefill, router, seed)
    transfer = link_latency_s + requests.prompt_tokens * kv_bytes_per_token / link_bytes_per_s
    going = np.flatnonzero((first.status == FINISHED) & (requests.output_tokens > 1))
    finish, status = first.finish_s.copy(), first.status.copy()
    gap = np.zeros(len(requests))
    preemptions = first.num_preemptions.copy()
    second = None
    if len(going):
        arrival = first.finish_s[going] + transfer[going]
        order = np.argsort(arrival, kind="stable")
        going, arrival = going[order], arrival[order]
        # all clients that are still here have seen a token
        patient = dataclasses.replace(decode, engine=dataclasses.replace(decode.engine, patience_s=None))
        second = _run(_second_half(requests, going, arrival), patient, router, seed)
        finish[going], status[going] = second.finish_s, second.status
        limit = np.inf if decode.engine.timeout_s is None else decode.engine.timeout_s
        late = finish - requests.arrival_s > limit
        finish[late], status[late] = np.nan, ABANDONED
        gap[going] = np.maximum(second.max_itl_s, second.first_token_s - first.first_token_s[going])
        preemptions[going] += second.num_preemptions
    service = _together(requests, first, second, finish, status, gap, preemptions)
    mean_transfer = float(transfer[going].mean()) if len(going) else 0.0
    return DisaggregatedRun(service=service, prefill=first, decode=second, mean_transfer_s=mean_transfer)


def _run(requests: Requests, pool: Pool, router: str, seed: int) -> SimulationResult:
    # A request passes the server of both engines: the proxy sends it to one with max_tokens 1, then to the other
    # (vLLM docs, Disaggregated Prefilling).
    return simulate_fleet(
        requests,
        pool.engine,
        pool.limits,
        pool.step_time,
        num_replicas=pool.num_replicas,
        router=router,
        seed=seed,
        stop_on_overload=False,
    )


def prefill_part(requests: Requests) -> Requests:
    """The prefill pool's workload: every answer ends with its first token."""
    ones = np.ones_like(requests.output_tokens)
    return dataclasses.replace(requests, output_tokens=ones, output_limit_tokens=ones)


def decode_part(requests: Requests) -> Requests | None:
    """The decode pool's workload as if prompts took no time; None where every answer is a single token."""
    going = np.flatnonzero(requests.output_tokens > 1)
    return _second_half(requests, going, requests.arrival_s[going]) if len(going) else None


def _second_half(requests: Requests, going: Ints, arrival: Floats) -> Requests:
    """The decode pool's workload: the first token is known, all KV before it has been sent."""
    prompt = requests.prompt_tokens[going]
    return Requests(
        arrival_s=arrival,
        prompt_tokens=prompt + 1,
        output_tokens=requests.output_tokens[going] - 1,
        output_limit_tokens=np.maximum(1, requests.output_limit_tokens[going] - 1),
        prefix_group=np.full(len(going), -1, dtype=np.int64),
        prefix_tokens=np.zeros(len(going), dtype=np.int64),
        kv_ready_tokens=prompt,
        priority=None if requests.priority is None else requests.priority[going],
        adapter=None if requests.adapter is None else requests.adapter[going],
    )


def _together(
    requests: Requests,
    first: SimulationResult,
    second: SimulationResult | None,
    finish: Floats,
    status: Bytes,
    gap: Floats,
    preemptions: Ints,
) -> SimulationResult:
    parts = [first] if second is None else [first, second]
    worst = max(parts, key=lambda part: ("stable", "backlogged", "overloaded").index(part.verdict))
    duration = max(part.duration_s + part.arrival_s[0] for part in parts) - float(requests.arrival_s[0])
    last = parts[-1]
    return dataclasses.replace(
        first,
        output_tokens=requests.output_tokens,
        finish_s=finish,
        status=status,
        max_itl_s=gap,
        num_preemptions=preemptions,
        duration_s=duration,
        num_steps=sum(part.num_steps for part in parts),
        busy_s=sum(part.busy_s for part in parts),
        mean_running=sum(part.mean_running for part in parts),
        mean_waiting=sum(part.mean_waiting for part in parts),
        mean_kv_used_fraction=last.mean_kv_used_fraction,
        mean_kv_written_fraction=last.mean_kv_written_fraction,
        prefill_tokens_computed=sum(part.prefill_tokens_computed for part in parts),
        decode_tokens=sum(part.decode_tokens for part in parts),
        verdict=worst.verdict,
        binding=worst.binding,
        message=worst.message,
        capacity_rps=worst.capacity_rps,
        itl_gap_s=last.itl_gap_s,
        itl_count=last.itl_count,
        itl_parts=last.itl_parts,
        num_slots=sum(part.num_slots for part in parts),
        timeline=None,
    )
