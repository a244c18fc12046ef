"""The load test that verifies a plan: the commands, and the figures that they should show."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass

from planner.answer import Plan, replica_of, serving_replicas, size
from planner.deploy.launch import Launch, Options, comment, shell_command
from planner.inputs import ServiceLevel
from planner.scenario import Scenario
from planner.service import Distribution, ServingMetrics, measure
from planner.units import format_duration, format_number, format_percent
from planner.workload import draw

TEST_S = 180.0  # an open loop is tested for about as long
FEWEST, MOST = 60, 2000  # requests of a test
WAVES = 10  # requests of each closed-loop user
Predict = Callable[[Scenario], ServingMetrics | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTest:
    """A load test of one replica.

    `scenario` is the test as a plan: one replica at its share of the load, every request counted, all prompts and
    answers of the plan's mean length. `expected` is what it predicts; None where no request fits.
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
        Its load, lengths and engine; a benchmark client sends equal lengths, so the test is predicted anew.
    predict : callable, optional
        What predicts the test, where that is to happen elsewhere.

    Returns
    -------
    LoadTest
        Predicted with the functions of `plan`.
    """
    scenario, notes = plan.scenario, []
    share = serving_replicas(plan)
    prompt, answer = max(1, round(plan.mean_prompt_tokens)), max(1, round(plan.mean_output_tokens))
    rate = max(1e-6, scenario.peak_rate_rps / share)
    users = max(1, math.ceil(scenario.concurrent_users / share))
    requests = min(MOST, max(FEWEST, round(rate * TEST_S)))
    if scenario.arrivals == "closed":
        requests = min(MOST, max(FEWEST, WAVES * users))
    elif scenario.arrivals == "once":
        requests = max(1, math.ceil(scenario.num_requests / share))
    if scenario.lengths != "constant" or scenario.prompt_spread or scenario.output_spread:
        notes.append("All requests have the plan's mean lengths; a mix of lengths is slower at the same rate.")
    if scenario.think_time_s:
        notes.append("Benchmark clients do not pause between requests, so the test is harder than the plan.")
    if scenario.num_lora_adapters:
        notes.append("The test asks for the base model, not for adapters.")
    if scenario.itl_target_s is not None:
        notes.append("The clients do not count the target of the gap between tokens (ITL).")
    tested = scenario.replace(
        demand="rate",
        rate_rps=rate,
        concurrent_users=users,
        think_time_s=0.0,
        question="will",
        num_replicas=1,
        num_requests=requests,
        lengths="constant",
        prompt_mean_tokens=float(max(prompt, scenario.shared_prefix_tokens + 1)),
        output_mean_tokens=float(answer),
        prompt_spread=0.0,
        output_spread=0.0,
        max_prompt_tokens=None,
        output_limit_tokens=None,
        exact_output_limit=True,
        num_lora_adapters=0,
        measured_requests="all",
    )
    return LoadTest(scenario=tested, expected=predict(tested), notes=tuple(notes))


def vllm_bench(test: LoadTest, launch: Launch) -> str:
    """`vllm bench serve` with the expected figures as comments; it drives every OpenAI-compatible server."""
    scenario = test.scenario
    options = Options("vllm bench serve", "vllm bench serve", "")
    options.add("--backend", "openai")
    options.add("--base-url", f"http://localhost:{launch.port}")
    options.add("--model", launch.model)
    prompt, answer = round(scenario.prompt_mean_tokens), round(scenario.output_mean_tokens)
    shared = scenario.shared_prefix_tokens
    if shared and scenario.num_prefix_groups > 1:
        options.add("--dataset-name", "prefix_repetition")
        options.add("--prefix-repetition-prefix-len", shared)
        options.add("--prefix-repetition-suffix-len", prompt - shared)
        options.add("--prefix-repetition-num-prefixes", scenario.num_prefix_groups)
        options.add("--prefix-repetition-output-len", answer)
    else:
        options.add("--dataset-name", "random")
        options.add("--random-input-len", prompt - shared)
        options.add("--random-output-len", answer)
        if shared:
            options.add("--random-prefix-len", shared)
    options.add("--num-prompts", scenario.num_requests)
    if scenario.arrivals == "closed":
        options.add("--max-concurrency", scenario.concurrent_users)
    elif scenario.is_open_loop:
        options.add("--request-rate", round(scenario.rate_rps, 4))
    if scenario.arrivals == "bursty":
        options.add("--burstiness", round(1 / scenario.burst_cv**2, 4))  # a gamma distribution's shape
    options.add("--ignore-eos")
    options.add("--seed", scenario.seed)
    options.add("--percentile-metrics", "ttft,tpot,e2el")
    options.add("--metric-percentiles", _percentiles(scenario.service_level))
    text = shell_command(("vllm", "bench", "serve"), options.chosen) + _goodput(scenario.service_level)
    return "\n".join([*_expected(test), text]) + "\n"


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
    data: dict[str, object] = {"kind": "synthetic_text", "prompt_tokens": round(scenario.prompt_mean_tokens)}
    if scenario.shared_prefix_tokens:
        data["prompt_tokens"] = round(scenario.prompt_mean_tokens) - scenario.shared_prefix_tokens
        data["prefix_buckets"] = [
            {"prefix_count": scenario.num_prefix_groups, "prefix_tokens": scenario.shared_prefix_tokens}
        ]
    data["output_tokens"] = round(scenario.output_mean_tokens)
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


def _percentiles(level: ServiceLevel) -> str:
    own = f"{100 * level.quantile:g}"
    return ",".join(sorted({"50", "95", "99", own}, key=float))


def _goodput(level: ServiceLevel) -> str:
    """The plan's targets, in ms, as one flag with several words."""
    pairs = [("ttft", level.ttft_s), ("tpot", level.tpot_s), ("e2el", level.e2e_s)]
    words = [f"{name}:{1000 * target:g}" for name, target in pairs if target is not None]
    return f" \\\n  --goodput {' '.join(words)}" if words else ""


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
