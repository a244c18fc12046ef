"""Speed of the simulator on the reference workload, beside the plain step-by-step loop.

Run: python -m tests.benchmarks.bench_simulator
"""

from __future__ import annotations

import dataclasses
import resource
import time

import numpy as np

from planner.catalog.engines import get_engine
from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.hardware import Parallelism
from planner.inputs.traffic import Arrivals, Lengths, Traffic
from planner.memory.sizing import plan_memory
from planner.service.capacity import capacity_rps
from planner.service.replica import Replica
from planner.step_time.model import step_time_table
from planner.step_time.rank_share import RankShare
from planner.workload.drawing import NO_LIMIT_TOKENS, draw_lengths, draw_requests, with_rate
from planner.workload.requests import Requests
from tests.simulation.reference import Reference

CONTEXT = 8192
LOAD = 0.7
PLAIN_REQUESTS = 1000


def reference_replica() -> Replica:
    """Llama-3.1-8B on one H100 with vLLM's defaults."""
    model, gpu, engine = get_model("meta-llama/Llama-3.1-8B-Instruct"), get_gpu("H100 SXM"), get_engine("vllm")
    memory = plan_memory(model, gpu, engine, Parallelism(), max_model_len=CONTEXT)
    table = step_time_table(RankShare(model=model, gpu=gpu, engine=engine, parallelism=Parallelism()))
    return Replica(engine=engine, limits=memory.limits(), step_time=table)


def workload(count: int, rate_rps: float) -> Requests:
    """Prompts and outputs lognormal with means 512 and 128, Poisson arrivals."""
    traffic = Traffic(
        arrivals=Arrivals(rate_rps=rate_rps), prompt_tokens=Lengths(mean=512), output_tokens=Lengths(mean=128)
    )
    return draw_requests(traffic, count, 7, max_model_len=CONTEXT)


def conversations(count: int, rate_rps: float, turns: int = 4) -> Requests:
    """Each prompt repeats what was said and adds 256 tokens on average, about 25 s after the one before."""
    rng = np.random.default_rng(7)
    shape = (count, turns)
    said = draw_lengths(Lengths(mean=256), count * turns, rng).reshape(shape)
    answers = draw_lengths(Lengths(mean=128), count * turns, rng).reshape(shape)
    before = np.cumsum(said + answers, axis=1) - said - answers
    pauses = np.where(np.arange(turns) > 0, 5.0 + rng.exponential(20.0, shape), 0.0)
    arrival = np.cumsum(rng.exponential(1 / rate_rps, count))[:, np.newaxis] + np.cumsum(pauses, axis=1)
    order = np.argsort(arrival, axis=None)
    return Requests(
        arrival_s=arrival.ravel()[order],
        prompt_tokens=(before + said).ravel()[order],
        output_tokens=answers.ravel()[order],
        output_limit_tokens=np.full(count * turns, NO_LIMIT_TOKENS),
        prefix_group=np.repeat(np.arange(count), turns)[order],
        prefix_tokens=before.ravel()[order],
    )


def features(replica: Replica, rate_rps: float, count: int = 100_000) -> None:
    """Print requests per second of workloads whose requests are not all alike to the scheduler."""
    lengths = {"prompt_tokens": Lengths(mean=512), "output_tokens": Lengths(mean=128)}
    traffic = Traffic(arrivals=Arrivals(rate_rps=rate_rps), **lengths)
    prefixes = dataclasses.replace(traffic, shared_prefix_tokens=256, num_prefix_groups=100)
    adapters = dataclasses.replace(traffic, num_lora_adapters=50)
    cases = {
        "100 prefixes of 256 tokens": (prefixes, {}),
        "50 LoRA adapters, 16 slots": (adapters, {"max_loras": 16}),
        "clients who leave": (traffic, {"patience_s": 5.0, "timeout_s": 30.0}),
    }
    drawn = {name: (draw_requests(t, count, 7, max_model_len=CONTEXT), more) for name, (t, more) in cases.items()}
    drawn["conversations of 4 turns"] = (conversations(count // 4, rate_rps / 6), {})
    for name, (requests, more) in drawn.items():
        changed = dataclasses.replace(replica, engine=dataclasses.replace(replica.engine, **more))
        begin = time.perf_counter()
        changed.run(requests)
        print(f"{name}: {len(requests) / (time.perf_counter() - begin):,.0f} requests/s")


def main() -> None:
    """Print requests per second of both loops."""
    replica = reference_replica()
    begin = time.perf_counter()
    rate = LOAD * capacity_rps(replica, workload(4000, 1.0))
    print(f"first call, compilation included if it was needed: {time.perf_counter() - begin:.2f} s")
    print(f"rate: {rate:.1f} req/s, {LOAD:.0%} of capacity")
    speed = 0.0
    for count in (10_000, 100_000, 1_000_000):
        requests = with_rate(workload(count, 1.0), rate)
        seconds = []
        for _ in range(3):
            begin = time.perf_counter()
            result = replica.run(requests)
            seconds.append(time.perf_counter() - begin)
        speed = count / min(seconds)
        print(
            f"{count:>9,} requests, {result.num_steps:,} steps: best of 3 {min(seconds) * 1e3:,.1f} ms, "
            f"{speed:,.0f} requests/s"
        )
    print(f"peak memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
    features(replica, rate)
    requests = with_rate(workload(PLAIN_REQUESTS, 1.0), rate)
    begin = time.perf_counter()
    Reference(requests, replica.engine, replica.limits, replica.step_time).run()
    plain = PLAIN_REQUESTS / (time.perf_counter() - begin)
    print(f"plain loop: {plain:,.0f} requests/s; the compiled loop is {speed / plain:,.0f} times as fast")


if __name__ == "__main__":
    main()
