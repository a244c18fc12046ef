"""Commands that search: the cheapest deployments for a scenario, and the models that start on a GPU."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from planner.answer import dask_executor, fits, fits_text, linked, plain, plan, recommend, search_text
from planner.commands.options import add_json, planning
from planner.commands.scenarios import read_scenario, trace_of
from planner.scenario import Scenario, to_query
from planner.workload import fitted

if TYPE_CHECKING:
    from planner.commands.options import Commands


def add_to(commands: Commands) -> None:
    """Declare the commands."""
    command = commands.add_parser("recommend", parents=planning(), help="search for the cheapest deployment")
    command.add_argument("--gpus", metavar="LIST", help="only these GPUs, with how many: 'H100 SXM:8, L40S'")
    command.add_argument("--vendor", metavar="NAME", help="only GPUs of this vendor")
    command.add_argument("--max-gpus", type=int, metavar="N", help="at most N GPUs, all replicas together")
    command.add_argument("--one-server", action="store_true", help="all GPUs in one server")
    command.add_argument("--measured", action="store_true", help="only GPUs whose kernels were measured")
    command.add_argument("--price", metavar="KIND", help="ondemand, reserved, spot or owned")
    command.add_argument("--dask", metavar="ADDRESS", help="search on the Dask cluster of this scheduler")
    command.set_defaults(run=_recommend)
    command = commands.add_parser("fits", help="every model of the catalog that starts on a GPU")
    command.add_argument("gpu", metavar="GPU", help="a GPU of the catalog, such as 'RTX 4090'")
    command.add_argument("--count", type=int, default=1, metavar="N", help="GPUs that one copy of a model may use")
    command.add_argument("--context", type=int, default=8192, metavar="TOKENS", help="context of one session")
    command.add_argument("--engine", action="append", metavar="NAME", help="engine to try; repeat it for several")
    add_json(command)
    command.set_defaults(run=_fits)


def _recommend(options: argparse.Namespace) -> None:
    scenario = restricted(read_scenario(options), options)
    trace = trace_of(options, scenario)
    if trace is not None:  # each candidate draws from what the recording looks like, at rates of its own
        scenario = fitted(scenario, trace)
    with _workers(options.dask) as executor:
        found = recommend(scenario, executor=executor)
    if options.json:
        body = plain(found)
        for item, candidate in zip(body["candidates"], found.candidates, strict=True):
            item["link"] = to_query(candidate.scenario)
        print(json.dumps(body, indent=2))
        return
    print(search_text(found, scenario))


def restricted(scenario: Scenario, options: argparse.Namespace) -> Scenario:
    """The scenario with the restrictions that the options name."""
    changes = {
        "my_gpus": options.gpus,
        "gpu_vendor": options.vendor,
        "most_gpus": options.max_gpus,
        "price_kind": options.price,
        "one_node": options.one_server or None,
        "measured_only": options.measured or None,
    }
    return scenario.replace(**{name: value for name, value in changes.items() if value is not None})


@contextmanager
def _workers(address: str | None) -> Iterator[Executor]:
    """Where the search computes: this machine's cores, or the Dask cluster at an address."""
    if address is not None:
        with dask_executor(address) as executor:
            yield executor
        return
    plan(Scenario(num_requests=20))  # compiles, or loads what was compiled: the forked workers inherit it
    forks = "fork" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if forks else "spawn")
    with ProcessPoolExecutor(max_workers=os.cpu_count(), mp_context=context) as pool:
        yield pool


def _fits(options: argparse.Namespace) -> None:
    found = fits(options.gpu, count=options.count, context_tokens=options.context, engines=options.engine)
    if options.json:
        print(json.dumps([linked(item) for item in found], indent=2))
    else:
        print(fits_text(found))
