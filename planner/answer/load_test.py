"""The load test of a plan: one replica's share of its load, as a benchmark client can send it."""

from __future__ import annotations

import json
import math
import shlex

import numpy as np

from planner.answer.outcome import Plan, serving_replicas
from planner.inputs import LengthKind, Lengths, ServiceLevel
from planner.scenario import Scenario
from planner.units import MS

TEST_S = 180.0  # an open loop is tested for about as long
FEWEST, MOST = 60, 2000  # requests of a test
WAVES = 10  # requests of each closed-loop user
WIDEST = 0.9  # half-width ÷ mean of the lengths: clients take less than 1
BENCH = ("vllm", "bench", "serve")
Flags = tuple[tuple[str, tuple[str, ...]], ...]


def load_test_scenario(plan: Plan) -> Scenario:
    """The load test of a plan as a scenario: one replica at its share of the load, every request counted.

    Prompts and answers are drawn evenly around the plan's means, as wide as its own lengths spread: clients draw no
    other mix. Several shared prompts are sent with equal lengths.
    """
    scenario, share = plan.scenario, serving_replicas(plan)
    rate = max(1e-6, scenario.peak_rate_rps / share)
    users = max(1, math.ceil(scenario.concurrent_users / share))
    requests = min(MOST, max(FEWEST, round(rate * TEST_S)))
    if scenario.arrivals == "closed":
        requests = min(MOST, max(FEWEST, WAVES * users))
    elif scenario.arrivals == "once":
        requests = max(1, math.ceil(scenario.num_requests / share))
    shared = scenario.shared_prefix_tokens
    prompt = max(1, round(plan.mean_prompt_tokens), shared + 1)
    answer = max(1, round(plan.mean_output_tokens))
    mixed = not (shared and scenario.num_prefix_groups > 1)
    # The longest prompt and answer must fit together: a server refuses more than its context.
    most = max(0.0, (scenario.max_model_len - prompt - answer) / (prompt - shared + answer)) if mixed else 0.0
    widths = [min(most, _half_width(item)) for item in (scenario.traffic.prompt_tokens, scenario.traffic.output_tokens)]
    return scenario.replace(
        demand="rate",
        rate_rps=rate,
        concurrent_users=users,
        think_time_s=0.0,
        question="will",
        num_replicas=1,
        deployment="aggregated",
        prefill_replicas=None,
        decode_replicas=None,
        num_requests=requests,
        lengths="uniform" if mixed else "constant",
        prompt_mean_tokens=float(prompt),
        output_mean_tokens=float(answer),
        prompt_spread=widths[0] * (prompt - shared) / prompt,  # only what follows the shared prompt varies
        output_spread=widths[1],
        max_prompt_tokens=None,
        output_limit_tokens=None,
        exact_output_limit=True,
        num_lora_adapters=0,
        safety_margin=0.0,  # measured against the targets themselves
        measured_requests="all",
    )


def _half_width(lengths: Lengths) -> float:
    """Half the width ÷ mean of a uniform distribution with the standard deviation of these lengths."""
    if lengths.kind is LengthKind.CONSTANT:
        return 0.0
    if lengths.kind is LengthKind.UNIFORM:
        return min(WIDEST, lengths.spread)
    spread = lengths.spread
    if lengths.kind is LengthKind.QUANTILES:
        spread = float(np.std(lengths.quantiles)) / lengths.mean
    elif lengths.kind is LengthKind.EXPONENTIAL:
        spread = 1.0
    return min(WIDEST, math.sqrt(3) * spread)


def input_half_width(tested: Scenario) -> float:
    """Half the width ÷ mean of what follows the shared prompt."""
    own = tested.prompt_mean_tokens - tested.shared_prefix_tokens
    return tested.prompt_spread * tested.prompt_mean_tokens / own


def bench_flags(tested: Scenario, model: str, base_url: str = "") -> Flags:
    """Flags of `vllm bench serve` that send a test's traffic to any server that speaks the OpenAI protocol.

    Parameters
    ----------
    tested : Scenario
        From `load_test_scenario`.
    model : str
        What the server calls the model.
    base_url : str
        Where the server listens; "": the client's default, port 8000 of this machine.

    Returns
    -------
    tuple of (str, tuple of str)
        Each flag with its words. Source: vllm/benchmarks/serve.py and datasets of vLLM 0.33.0.
    """
    found: list[tuple[str, object]] = [("--backend", "openai"), ("--base-url", base_url), ("--model", model)]
    prompt, answer = round(tested.prompt_mean_tokens), round(tested.output_mean_tokens)
    shared = tested.shared_prefix_tokens
    if shared and tested.num_prefix_groups > 1:
        found += [
            ("--dataset-name", "prefix_repetition"),
            ("--prefix-repetition-prefix-len", shared),
            ("--prefix-repetition-suffix-len", prompt - shared),
            ("--prefix-repetition-num-prefixes", tested.num_prefix_groups),
            ("--prefix-repetition-output-len", answer),
        ]
    else:
        widths = {"input": round(input_half_width(tested), 3), "output": round(tested.output_spread, 3)}
        found += [("--dataset-name", "random"), ("--random-input-len", prompt - shared)]
        found += [("--random-output-len", answer)]
        found += [("--random-range-ratio", json.dumps(widths))] if any(widths.values()) else []
        found += [("--random-prefix-len", shared)] if shared else []
    found.append(("--num-prompts", tested.num_requests))
    if tested.arrivals == "closed":
        found.append(("--max-concurrency", tested.concurrent_users))
    elif tested.is_open_loop:
        found.append(("--request-rate", f"{tested.rate_rps:.4g}"))
    if tested.arrivals == "bursty":
        found.append(("--burstiness", f"{1 / tested.burst_cv**2:.4g}"))  # a gamma distribution's shape
    found += [("--seed", tested.seed), ("--percentile-metrics", "ttft,tpot,itl,e2el")]
    found.append(("--metric-percentiles", _percentiles(tested.service_level)))
    goals = _goals(tested.service_level)
    return (*((name, (str(value),)) for name, value in found if value != ""), ("--ignore-eos", ()), *goals)


def measurement(plan: Plan) -> str:
    """The command that loads one replica as the plan does, with the figures of the targets, in one line."""
    return bench_command(load_test_scenario(plan), plan.model.name)


def bench_command(tested: Scenario, model: str) -> str:
    """`vllm bench serve` with `bench_flags`, in one line."""
    return shlex.join([*BENCH, *(word for name, words in bench_flags(tested, model) for word in (name, *words))])


def _percentiles(level: ServiceLevel) -> str:
    own = f"{100 * level.quantile:g}"
    return ",".join(sorted({"50", "95", "99", own}, key=float))


def _goals(level: ServiceLevel) -> Flags:
    """The targets that the client counts, in ms, as one flag with several words."""
    pairs = [("ttft", level.ttft_s), ("tpot", level.tpot_s), ("e2el", level.e2e_s)]
    words = tuple(f"{name}:{target / MS:g}" for name, target in pairs if target is not None)
    return (("--goodput", words),) if words else ()
