"""Commands that simulate alone: the engine presets on the same requests, and the comparison of the seed article."""

from __future__ import annotations

import argparse
import json
import math
import time
from typing import TYPE_CHECKING, Any

from planner.answer import plain, replica_of, size
from planner.commands.options import planning
from planner.commands.scenarios import read_scenario, trace_of
from planner.scenario import Scenario, capacity_fraction
from planner.service import Replica, capacity_rps, first_requests, measure
from planner.simulation import format_seed_table
from planner.workload import Requests, draw, with_rate

if TYPE_CHECKING:
    from planner.commands.options import Commands


def add_to(commands: Commands) -> None:
    """Declare the commands."""
    command = commands.add_parser("simulate", parents=planning(), help="the simulation alone")
    command.add_argument(
        "--policy",
        action="append",
        metavar="NAME",
        help="engine preset to simulate instead of the scenario's; repeat it to compare several",
    )
    command.set_defaults(run=_simulate)
    command = commands.add_parser("seed", help="the scheduling comparison of the seed article")
    command.set_defaults(run=lambda options: print(format_seed_table()))


def _simulate(options: argparse.Namespace) -> None:
    scenario = read_scenario(options)
    names = options.policy or [scenario.engine]
    trace = trace_of(options, scenario)
    out = []
    for name in names:
        lane = scenario.replace(engine=name)
        sized = size(lane)
        replica = replica_of(sized)
        requests = trace if trace is not None else offered(lane, replica, options.preset)
        replica.run(first_requests(requests, 50))  # compiles outside the timed run
        started = time.perf_counter()
        result = replica.run(requests)
        wall_s = time.perf_counter() - started
        metrics = measure(result, lane.service_level)
        out.append(
            {
                "policy": name,
                "requests": len(requests),
                "wall_s": wall_s,
                "simulated_requests_per_s": len(requests) / wall_s if wall_s > 0 else math.inf,
                "duration_s": result.duration_s,
                "num_steps": result.num_steps,
                "verdict": result.verdict,
                "metrics": plain(metrics),
            }
        )
    if options.json:
        print(json.dumps(out[0] if len(out) == 1 else {"policies": out}, indent=2))
        return
    for item in out:
        print(_simulation_line(item))


def offered(scenario: Scenario, replica: Replica, preset: str | None) -> Requests:
    """The scenario's requests at the rate that reaches one replica.

    The reference preset gives its rate as a share of capacity, which only the replica knows.
    """
    requests = draw(scenario)
    share = capacity_fraction(preset)
    if share is not None:
        probe = first_requests(requests, 4000)
        return with_rate(requests, share * capacity_rps(replica, probe))
    if scenario.is_open_loop:
        return with_rate(requests, scenario.peak_rate_rps / (scenario.num_replicas or 1))
    return requests


def _simulation_line(item: dict[str, Any]) -> str:
    metrics = item["metrics"]
    return (
        f"{item['policy']}: {item['requests']:,} requests in {item['duration_s']:.1f} s of simulated time "
        f"({item['verdict']}), {metrics['output_tokens_per_s']:,.1f} output tokens/s, "
        f"TTFT p50/p95/p99 {_ms(metrics['ttft_s'])} ms, TPOT {_ms(metrics['tpot_s'])} ms, "
        f"goodput {metrics['goodput_rps']:.2f} req/s; simulated in {item['wall_s'] * 1e3:.1f} ms "
        f"({item['simulated_requests_per_s']:,.0f} requests/s)"
    )


def _ms(summary: dict[str, float | None]) -> str:
    return " / ".join("—" if summary[q] is None else f"{1e3 * (summary[q] or 0):.1f}" for q in ("p50", "p95", "p99"))
