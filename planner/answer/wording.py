"""The answer in sentences, made from a Plan's numbers."""

from __future__ import annotations

import math

from planner.answer.outcome import ANSWERED, Plan, Reached, Taken, reached, serving_replicas, target_label
from planner.cost import CostPlan
from planner.memory import (
    OOM,
    OOM_CAPTURE,
    OOM_HOST,
    OOM_SAMPLER,
    PARTLY_ON_CPU,
    REFUSED_FREE_MEMORY,
    REFUSED_LENGTH,
    REFUSED_NO_BLOCKS,
    REFUSED_PRECISION,
    REFUSED_STATE_CACHE,
    REFUSED_STATES,
    REFUSED_STEP,
    MemoryPlan,
)
from planner.scenario import Scenario
from planner.service import LOST, STEADY_SHARE, THROUGHPUT, ServingMetrics
from planner.units import GIB, counted, format_duration, format_number, format_percent, format_usd


def _before_the_cache(memory: MemoryPlan) -> str:
    return "weights and states for drafted tokens" if memory.state_bytes else "weights and runtime"


def _shortage(memory: MemoryPlan) -> str:
    return f" ({-memory.kv_pool_bytes / GIB:.1f} GiB short)" if memory.kv_pool_bytes < 0 else ""


def refusal_in_short(memory: MemoryPlan) -> str:
    """Why the engine does not start, in a few words; `memory.refusal` is the engine's own message."""
    gpu, weights = memory.total_bytes / GIB, memory.weights_bytes / GIB
    return {
        OOM: f"{weights:.1f} GiB of weights do not fit in {gpu:.1f} GiB",
        OOM_CAPTURE: f"weights and KV cache leave no room for {memory.cuda_graph_bytes / GIB:.1f} GiB of CUDA graphs",
        OOM_HOST: "the host has too little memory for what the GPUs do not hold",
        OOM_SAMPLER: f"no room is left to warm up the sampler for {counted(memory.max_num_seqs, 'sequence')}",
        REFUSED_NO_BLOCKS: f"{_before_the_cache(memory)} leave no room for the KV cache{_shortage(memory)}",
        REFUSED_LENGTH: f"the KV cache holds {memory.held_length_tokens:,} tokens, a full-length sequence needs "
        f"{memory.max_model_len:,}",
        REFUSED_STATES: f"{counted(memory.max_num_seqs, 'sequence')} need a state each, and memory holds "
        f"{memory.logged_kv_blocks:,}",
        PARTLY_ON_CPU: f"{-memory.free_bytes / GIB:.1f} GiB do not fit, so part of it runs on the CPU",
        REFUSED_STATE_CACHE: "the memory left does not hold one request's state",
        REFUSED_PRECISION: "the engine has no kernels for these weights or this KV cache on this GPU",
        REFUSED_STEP: f"max_num_batched_tokens {memory.max_num_batched_tokens:,} is too small for one whole image",
        REFUSED_FREE_MEMORY: f"other processes already hold {memory.occupied_bytes / GIB:.1f} of its {gpu:.1f} GiB",
    }.get(memory.outcome, memory.refusal.rstrip("."))


def clients_in_words(done: Plan) -> str:
    """Who is served, in words."""
    scenario = done.scenario
    if scenario.arrivals == "closed":
        return counted(scenario.concurrent_users, "concurrent user")
    if scenario.arrivals == "once":
        return f"a burst of {counted(scenario.num_requests, 'request')}"
    rate = f"{format_number(scenario.peak_rate_rps)} req/s at peak"
    return f"{counted(scenario.users, 'user')} ({rate})" if scenario.demand == "users" else rate


def _split(done: Plan) -> str:
    """Which replicas do what, where prefill and decode are apart."""
    if done.pools is None:
        return ""
    return f" ({done.pools.num_prefill:,} prefill + {counted(done.pools.num_decode, 'decode replica')})"


def load_in_words(scenario: Scenario, load: float) -> str:
    """A load in the terms in which the scenario states its own.

    Parameters
    ----------
    scenario : Scenario
        Any arrivals.
    load : float
        Requests per second of an open loop, users of a closed loop, requests of a burst.
    """
    if scenario.arrivals == "closed":
        return counted(int(load), "concurrent user")
    if scenario.arrivals == "once":
        return counted(int(load), "request") + " at once"
    there, rate = scenario.at_load(max(load, 1e-6)), f"{format_number(load)} req/s"
    if scenario.demand == "users":
        return f"{counted(there.users, 'user')} ({rate})"
    return f"{format_number(there.requests_per_day)} requests a day ({rate})" if scenario.demand == "daily" else rate


_WAITS = {
    "kv cache": "requests then wait for KV cache",
    "max_num_seqs": "requests then wait for one of the max_num_seqs places",
    "token budget": "prompts then wait for room in max_num_batched_tokens",
    "lora slots": "requests then wait for a LoRA slot",
    "api server": "the API server is then busy all the time",
    "compute": "the GPU is then busy all the time",
}


def gives_first(taken: Taken) -> str:
    """What more load than a fleet takes misses first, in a sentence without its full stop; empty where nothing does."""
    if not taken.gives_first:
        return ""
    wait = _WAITS.get(taken.held_up_by, "")
    what = {
        THROUGHPUT: "more load exceeds the throughput",
        LOST: "of more load too many requests are rejected or abandoned",
    }.get(taken.gives_first, f"more load misses the {taken.gives_first} target first")
    return f"{what}{f' ({wait})' if wait else ''}"


def headline(done: Plan) -> str:
    """The answer in one sentence that a team lead can repeat."""
    scenario, memory, metrics = done.scenario, done.memory, done.metrics
    model = done.model.name.rsplit("/", 1)[-1]
    if not done.fits:
        cure = f"; try {' or '.join(memory.remedies[:2])}" if memory.remedies else ""
        gpus = scenario.parallelism.gpus_per_replica
        verb = "does not fit entirely on" if memory.outcome == PARTLY_ON_CPU else "does not start on"
        return f"{model} {verb} {gpus} × {done.gpu.name}: {refusal_in_short(memory)}{cure}."
    assert metrics is not None
    assert done.cost is not None
    fleet, who = f"{done.num_gpus:,} × {done.gpu.name}{_split(done)}", f"{clients_in_words(done)} of {model}"
    if scenario.is_open_loop and scenario.demand != "users":
        who = f"{format_number(scenario.peak_rate_rps)} req/s of {model} at peak"
    lost = lost_in_words(metrics)
    if metrics.num_finished == 0:
        return f"{fleet} cannot serve {who}: {lost or 'no request finishes'}."
    if done.taken is not None and done.taken.load == 0:
        return f"{fleet} cannot hold the targets at any load: {idle_miss(done)}."
    if done.slo_met:
        one, many = ("takes", "take") if done.taken is not None else ("serves", "serve")
        verb, price = many if done.num_gpus > 1 else one, format_usd(done.cost.usd_per_million_tokens)
        without = "" if scenario.targets else f"; no latency target is set{_sized_without_targets(done)}"
        told = ", ".join([*_latencies(done), f"{price} per million tokens"])
        at_most = " at most" if done.taken is not None and done.taken.load < math.inf else ""
        return f"{fleet} {verb}{at_most} {who}: {told}{without}."
    assert done.curve is not None
    most = done.curve.capacity_rps * serving_replicas(done)
    if scenario.is_open_loop and most < scenario.peak_rate_rps:
        return (
            f"{fleet} cannot keep up with {who}: at most {done.curve.capacity_in_words(serving_replicas(done))} req/s "
            "finish, so the queue keeps growing."
        )
    if not scenario.targets:
        return f"{fleet} cannot serve {who}: {lost or meeting(done)}."
    missed = ", ".join(_latencies(done, targets_only=True))
    of_target = "target" if len(scenario.targets) == 1 else "targets"
    return f"{fleet} cannot meet the {of_target} for {who}: {missed}; {meeting(done)}{', ' if lost else ''}{lost}."


_SAID = {
    "ttft_target_s": "p{percent:g} first token {time}",
    "tpot_target_s": "{time} per token",
    "itl_target_s": "longest gap p{percent:g} {time}",
    "e2e_target_s": "end to end p{percent:g} {time}",
}


def _sized_without_targets(done: Plan) -> str:
    """What sets the number of GPUs where no latency does; empty where the user gives it."""
    if done.scenario.asks != "need":
        return ""
    if not done.scenario.is_open_loop and done.replicas_for_slo == 1:
        return ", so one replica is enough"
    answered = any(link.reason == ANSWERED for link in done.chain)
    return "; the share of requests that are answered sizes it" if answered else ", so throughput alone sizes it"


def idle_miss(done: Plan) -> str:
    """What a replica without load makes of the targets that it misses."""
    assert done.metrics is not None
    idle = done.curve.points[0].metrics if done.curve is not None and done.curve.points else done.metrics
    rows = [row for row in reached(done.scenario, idle) if row.is_missed]
    told = " and ".join(f"{target_label(row.name)} {_against(row)}" for row in rows)
    return f"without load {told}" if told else meeting(done)


def _latencies(done: Plan, *, targets_only: bool = False) -> list[str]:
    """Latencies at the plan's quantile, each target named beside its own; TTFT and TPOT also without one."""
    scenario, metrics = done.scenario, done.metrics
    assert metrics is not None
    quantile = scenario.target_quantile
    limits = {row.field: row for row in reached(scenario, metrics)}
    usual = {} if targets_only else {"ttft_target_s": metrics.ttft_s, "tpot_target_s": metrics.tpot_s}
    said = []
    for field, text in _SAID.items():
        row = limits.get(field)
        figure_s = row.figure_s if row is not None else usual[field].at(quantile) if field in usual else math.nan
        if math.isfinite(figure_s):
            told = text.format(percent=quantile * 100, time=format_duration(figure_s))
            said.append(told + (f" (target {format_duration(row.limit_s)})" if row is not None else ""))
    return said


def meeting(done: Plan) -> str:
    """The share of requests that meet every target, in words."""
    assert done.metrics is not None
    share, number = done.metrics.slo_attainment, len(done.scenario.targets)
    what = {0: "finish", 1: "meet it", 2: "meet both"}.get(number, f"meet all {number}")
    if share == 0:
        return f"no request {'finishes' if not number else what.replace('meet', 'meets')}"
    return f"{told_apart(share, done.scenario.target_quantile)} of requests {what}"


def told_apart(share: float, asked: float) -> str:
    """A share with as many digits as tell it from the share asked for, where it is below that."""
    said = format_percent(share)
    if share >= asked or said != format_percent(asked):
        return said
    told = (round(100 * share, digits) for digits in (1, 2, 3))
    return next((f"{percent:g} %" for percent in told if percent < 100 * asked), f"just under {said}")


def lost_in_words(metrics: ServingMetrics) -> str:
    """Who gets no answer, where that is 1 % or more."""
    kinds = ((metrics.num_rejected, "of requests are rejected"), (metrics.num_abandoned, "of clients leave"))
    shares = [(count / max(1, metrics.num_requests), text) for count, text in kinds]
    return ", ".join(f"{format_percent(share)} {text}" for share, text in shares if share >= 0.01)


def reasons(done: Plan) -> tuple[str, ...]:
    """Why this answer, in sentences made from its numbers."""
    assert done.curve is not None
    assert done.cost is not None
    said = [_why_so_many(done)] if done.taken is None else _what_it_takes(done, done.taken)
    if done.taken is None and done.replicas_for_slo is None and not done.slo_met:
        said.append(_why_not_even_idle(done))
    elif done.slo_met and done.taken is None and done.curve.slo_rate_rps and done.scenario.is_open_loop:
        room = done.curve.slo_rate_rps * serving_replicas(done)
        times = room / done.scenario.peak_rate_rps
        if times > 1.001:
            more = f"{format_percent(times - 1)} above" if times < 2 else f"{format_number(times, 2)} times"
            does = "meets the targets up to" if done.scenario.targets else "keeps up with"
            said.append(f"The fleet {does} about {format_number(room)} req/s, {more} the peak.")
    said += _how_certain(done)
    said += _against_an_api(done.cost)
    return tuple(said)


def _against_an_api(cost: CostPlan) -> list[str]:
    """From which volume on own GPUs cost less than a hosted API, if from any."""
    even, now = cost.break_even, f"this plan serves {format_number(cost.requests_per_month)}"
    if even is None:
        return []
    if even.first_requests_per_month is None or even.always_requests_per_month is None:
        return [f"A hosted API ({cost.api_source}) stays cheaper at every volume with this peak ÷ mean."]
    first, always = format_number(even.first_requests_per_month), format_number(even.always_requests_per_month)
    said = f"Below {first} requests a month a hosted API ({cost.api_source}) is cheaper; {now}."
    if first != always:
        said += f" Just after each added replica it can be cheaper again, up to {always}."
    return [said]


def _what_it_takes(done: Plan, taken: Taken) -> list[str]:
    """What gives first, and the longest prompts and contexts, in sentences."""
    first, memory = gives_first(taken), done.memory
    said = [f"{first[0].upper()}{first[1:]}."] if first and taken.load else []
    longest = f"The engine starts with a context of up to {memory.longest_context_tokens:,} tokens"
    if taken.longest_prompt_tokens and done.scenario.targets:
        longest += (
            f"; a prompt of up to {taken.longest_prompt_tokens:,} tokens meets the targets when it has a replica "
        )
        longest += "to itself"
    return [*said, f"{longest}."]


def _how_certain(done: Plan) -> list[str]:
    """Where the simulation itself cannot tell this number of replicas from one more."""
    m, quantile = done.metrics, done.scenario.target_quantile
    assert m is not None
    if not done.slo_met:
        return []
    said, half = [], math.nan if done.scenario.arrivals == "once" else m.slo_attainment_half_width
    if half > m.slo_attainment - quantile:
        said.append(
            f"{format_percent(m.slo_attainment)} ± {format_percent(half)} of the simulated requests "
            f"{'meet the targets' if done.scenario.targets else 'finish'}, "
            f"{format_percent(quantile)} are asked for: {_to_be_sure(done, 1)}."
        )
    return [*said, *_how_certain_of_the_capacity(done)]


def _how_certain_of_the_capacity(done: Plan) -> list[str]:
    """Where the sampling of the capacity leaves open whether so many replicas carry the peak."""
    scenario, curve, serving = done.scenario, done.curve, serving_replicas(done)
    assert curve is not None
    if not scenario.is_open_loop or done.pools is not None:
        return []
    more = curve.replicas_to_carry(scenario.peak_rate_rps, surely=True) - serving
    if more <= 0:
        return []
    return [
        f"A saturated replica finishes {curve.capacity_in_words()} req/s (95 %), and {counted(serving, 'replica')} may "
        f"be loaded beyond {format_percent(STEADY_SHARE)} of that: {_to_be_sure(done, more)}."
    ]


def _to_be_sure(done: Plan, more: int) -> str:
    if done.taken is not None:
        return "a little less load to be sure"
    pools = f"{done.pools.num_prefill + 1:,} + {done.pools.num_decode + 1:,}" if done.pools is not None else ""
    return f"{pools or f'{done.num_replicas + more:,}'} replicas to be sure"


def _why_so_many(done: Plan) -> str:
    decisive = max(done.chain, key=lambda link: link.gpus)
    have = done.num_gpus
    if decisive.gpus <= done.scenario.parallelism.gpus_per_replica:
        what = "the throughput and the latency targets" if done.scenario.targets else "and the throughput"
        enough = f"One replica is enough for the weights, the KV cache{',' if done.scenario.targets else ''} {what}"
        return f"{enough}; you entered {done.num_replicas:,}." if done.num_replicas > 1 else f"{enough}."
    if math.isinf(decisive.gpus):
        return f"{decisive.reason}: {decisive.detail}."
    if decisive.gpus == have:
        return f"{decisive.reason} sets the number of GPUs: {decisive.detail}."
    return f"{decisive.reason} needs {counted(int(decisive.gpus), 'GPU')}, this plan has {have:,}: {decisive.detail}."


def _why_not_even_idle(done: Plan) -> str:
    """What is in the way when even an idle replica misses the targets."""
    assert done.metrics is not None
    assert done.curve is not None
    scenario, memory = done.scenario, done.memory
    no_help = "More replicas do not help"
    if not done.curve.points:
        return (
            f"No prompt is served: each is longer than the context of {memory.max_model_len:,} tokens or than the KV "
            f"cache holds. {no_help}; a longer context or shorter prompts do."
        )
    idle, quantile = done.curve.points[0].metrics, scenario.target_quantile
    missed = [f"the {row.name} target ({_against(row)})" for row in reached(scenario, idle) if row.is_missed]
    if missed:
        return (
            f"Even an idle replica misses {' and '.join(missed)}. {no_help}; a faster GPU, more tensor parallelism or "
            "a smaller model does."
        )
    if idle.slo_attainment >= quantile and scenario.fixes_pools:
        return (
            "A prefill and a decode replica alone meet the targets; leave their numbers empty to find how many do here."
        )
    if idle.slo_attainment >= quantile and scenario.is_open_loop:
        router = scenario.router.replace("_", " ")
        return (
            f"One replica meets the targets at its share of the rate, but the router ({router}) spreads requests so "
            f"unevenly that some replicas are overloaded. {no_help}; another router or more distinct prompts do."
        )
    left, refused = idle.num_abandoned / idle.num_requests, idle.num_rejected / idle.num_requests
    if left > 0 and left >= refused:
        limits = ((scenario.patience_s, "patience"), (scenario.timeout_s, "timeout"))
        own = " and ".join(f"a {text} of {format_duration(limit)}" for limit, text in limits if limit is not None)
        return (
            f"Even an idle replica loses {format_percent(left)} of clients, with {own}. {no_help}; more patient "
            "clients, shorter answers or a faster GPU do."
        )
    if refused > 0:
        return (
            f"Even an idle replica rejects {format_percent(refused)} of requests, and each counts as a missed target. "
            f"{no_help}; a longer context or shorter prompts do."
        )
    return (
        f"On an idle replica only {told_apart(idle.slo_attainment, quantile)} of requests meet every target; the plan "
        f"needs {format_percent(quantile)}. {no_help}; a faster GPU, more tensor parallelism or a smaller model does."
    )


def _against(row: Reached) -> str:
    return f"{format_duration(row.figure_s)}, target {format_duration(row.limit_s)}"
