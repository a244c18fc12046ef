"""The load test that verifies a plan: the commands, and the figures that they should show."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from planner.answer import BENCH, Plan, bench_flags, input_half_width, load_test_scenario, replica_of, size
from planner.deploy.launch import Launch, Options, comment, shell_command
from planner.scenario import Scenario
from planner.service import Distribution, ServingMetrics, measure
from planner.units import format_duration, format_number, format_percent
from planner.workload import draw

Predict = Callable[[Scenario], ServingMetrics | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTest:
    """A load test of one replica.

    `scenario` is the test as a plan (`planner.answer.load_test_scenario`), `expected` what it predicts; None where no
    request fits.
    """

    scenario: Scenario
    expected: ServingMetrics | None
    notes: tuple[str, ...]


def predicted(tested: Scenario) -> ServingMetrics | None:
    """What a test's traffic shows on one replica; None where the engine does not start."""
    requests = draw(tested)
    sized = size(tested, requests, explain=False)
    return measure(replica_of(sized).run(requests), tested.service_level) if sized.fits else None


def load_test(plan: Plan, predict: Predict = predicted) -> LoadTest:
    """The load test of a plan, with the figures that its own traffic should show.

    Parameters
    ----------
    plan : Plan
        Its load, lengths and engine; a benchmark client draws lengths evenly, so the test is predicted anew.
    predict : callable, optional
        What predicts the test, where that is to happen elsewhere.

    Returns
    -------
    LoadTest
        Predicted with the functions of `plan`.
    """
    scenario, tested = plan.scenario, load_test_scenario(plan)
    notes = [text for applies, text in _notes(scenario, tested) if applies]
    return LoadTest(scenario=tested, expected=predict(tested), notes=tuple(notes))


def _notes(scenario: Scenario, tested: Scenario) -> tuple[tuple[object, str], ...]:
    """How the test differs from the plan, each with whether it does."""
    prompts, answers = (format_percent(width) for width in (input_half_width(tested), tested.output_spread))
    even = f"prompts within {prompts} of their mean, answers within {answers}"
    mix = f"Lengths are drawn evenly, {even}; a mix with longer tails is slower at the same rate."
    is_mix = scenario.lengths not in ("constant", "uniform") and tested.lengths == "uniform"
    alike = scenario.lengths != "constant" and tested.lengths == "constant"
    return (
        (is_mix, mix),
        (alike, "All requests have the plan's mean lengths; a mix of lengths is slower at the same rate."),
        (scenario.think_time_s, "Benchmark clients do not pause between requests: the test is harder than the plan."),
        (scenario.num_lora_adapters, "The test asks for the base model, not for adapters."),
        (scenario.itl_target_s is not None, "The clients do not count the target of the gap between tokens (ITL)."),
    )


def vllm_bench(test: LoadTest, launch: Launch) -> str:
    """`vllm bench serve` with the expected figures as comments; it drives every OpenAI-compatible server."""
    flags = bench_flags(test.scenario, launch.model, f"http://localhost:{launch.port}")
    lines = [" ".join(BENCH), *(shlex.join([name, *words]) for name, words in flags)]
    return "\n".join([*_expected(test), " \\\n  ".join(lines)]) + "\n"


def guidellm(test: LoadTest, launch: Launch) -> str:
    """`guidellm run` with the expected figures as comments."""
    scenario = test.scenario
    options = Options("guidellm run", "guidellm run", "")
    profile: dict[str, object] = {"kind": "poisson", "rate": round(scenario.rate_rps, 4)}
    notes = []
    if scenario.arrivals == "closed":
        profile = {"kind": "concurrent", "streams": scenario.concurrent_users}
    elif scenario.arrivals == "once":
        profile = {"kind": "throughput"}
    elif scenario.arrivals == "bursty":
        notes.append("GuideLLM has no bursty arrivals: this is a Poisson test, and waits less.")
    shared = scenario.shared_prefix_tokens
    data: dict[str, object] = {"kind": "synthetic_text"}
    data |= _drawn("prompt", round(scenario.prompt_mean_tokens) - shared, input_half_width(scenario))
    if shared:
        data["prefix_buckets"] = [{"prefix_count": scenario.num_prefix_groups, "prefix_tokens": shared}]
    data |= _drawn("output", round(scenario.output_mean_tokens), scenario.output_spread)
    server = {"kind": "openai_http", "target": f"http://localhost:{launch.port}", "model": launch.model}
    for flag, value in (
        ("--backend", {**server, "request_format": "/v1/completions"}),
        ("--profile", profile),
        ("--data", data),
        ("--constraint", {"kind": "max_requests", "count": scenario.num_requests}),
    ):
        options.add(flag, json.dumps(value))
    lines = [*_expected(test), *map(comment, notes)]
    return "\n".join([*lines, shell_command(("guidellm", "run"), options.chosen)]) + "\n"


def _drawn(what: str, mean: int, width: float) -> dict[str, int]:
    """Lengths as GuideLLM draws them: evenly between a least and a most where no deviation is given."""
    found = {f"{what}_tokens": mean}
    if width:
        found[f"{what}_tokens_min"] = max(1, round(mean * (1 - width)))
        found[f"{what}_tokens_max"] = round(mean * (1 + width))
    return found


def _expected(test: LoadTest) -> list[str]:
    """The figures that the test should show, as comments."""
    scenario, seen = test.scenario, test.expected
    load = f"{scenario.rate_rps:.4g} req/s" if scenario.is_open_loop else f"{scenario.concurrent_users} at once"
    if scenario.arrivals == "once":
        load = "all at once"
    lines = [f"One replica, {scenario.num_requests:,} requests, {load}: its share of the planned load."]
    lines += test.notes
    if seen is None:
        return [*map(comment, lines), comment("Headroom predicts no figures: the engine does not start.")]
    lines += [
        f"Expected: {format_number(seen.requests_per_s)} req/s, {format_number(seen.output_tokens_per_s)} output "
        f"tokens/s, {format_number(seen.total_tokens_per_s)} tokens/s in all.",
        _line("TTFT", seen.ttft_s),
        _line("TPOT", seen.tpot_s),
        _line("E2E", seen.e2e_s),
        f"Requests that meet the targets: {format_percent(seen.slo_attainment)}.",
    ]
    return list(map(comment, lines))


def _line(name: str, seen: Distribution) -> str:
    parts = (("mean", seen.mean), ("p50", seen.p50), ("p95", seen.p95), ("p99", seen.p99))
    figures = ", ".join(f"{label} {format_duration(value)}" for label, value in parts if math.isfinite(value))
    return f"Expected {name}: {figures or 'none'}."
