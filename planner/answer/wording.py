"""The answer in sentences, all made from the numbers of a Plan."""

from __future__ import annotations

import math

from planner.answer.outcome import Plan, serving_replicas
from planner.memory import (
    OOM,
    OOM_CAPTURE,
    PARTLY_ON_CPU,
    REFUSED_FREE_MEMORY,
    REFUSED_LENGTH,
    REFUSED_NO_BLOCKS,
    REFUSED_STATE_CACHE,
    REFUSED_STATES,
    REFUSED_STEP,
    MemoryPlan,
)
from planner.service import ServingMetrics
from planner.units import GIB, counted, format_duration, format_number, format_percent, format_usd


def _before_the_cache(memory: MemoryPlan) -> str:
    return "weights and states of drafted tokens" if memory.state_bytes else "weights and runtime"


def _shortage(memory: MemoryPlan) -> str:
    return f" ({-memory.kv_pool_bytes / GIB:.1f} GiB short)" if memory.kv_pool_bytes < 0 else ""


def refusal_in_short(memory: MemoryPlan) -> str:
    """Why the engine does not start, in a few words; `memory.refusal` has the engine's own."""
    gpu, weights = memory.total_bytes / GIB, memory.weights_bytes / GIB
    return {
        OOM: f"{weights:.1f} GiB of weights do not fit into {gpu:.1f} GiB",
        OOM_CAPTURE: f"weights and KV cache leave no room for {memory.cuda_graph_bytes / GIB:.1f} GiB of CUDA graphs",
        REFUSED_NO_BLOCKS: f"{_before_the_cache(memory)} leave no room for the KV cache{_shortage(memory)}",
        REFUSED_LENGTH: f"the KV cache left over holds one sequence of {memory.held_length_tokens:,} tokens, not of "
        f"{memory.max_model_len:,}",
        REFUSED_STATES: f"{counted(memory.max_num_seqs, 'sequence')} need a state each, and there is room for "
        f"{memory.logged_kv_blocks:,}",
        PARTLY_ON_CPU: f"{-memory.free_bytes / GIB:.1f} GiB too much, so that part of it runs on the CPU",
        REFUSED_STATE_CACHE: "what is left holds the states of no request",
        REFUSED_STEP: f"a step of {memory.max_num_batched_tokens:,} tokens holds no whole image, as it must",
        REFUSED_FREE_MEMORY: f"other processes hold {memory.occupied_bytes / GIB:.1f} of its {gpu:.1f} GiB",
    }.get(memory.outcome, memory.refusal.rstrip("."))


def clients_in_words(done: Plan) -> str:
    """Who is to be served, in words."""
    scenario = done.scenario
    if scenario.arrivals == "closed":
        return counted(scenario.concurrent_users, "concurrent user")
    if scenario.arrivals == "once":
        return f"a burst of {counted(scenario.num_requests, 'request')}"
    rate = f"{format_number(scenario.peak_rate_rps)} req/s at peak"
    return f"{counted(scenario.users, 'user')} ({rate})" if scenario.demand == "users" else rate


def headline(done: Plan) -> str:
    """The answer in one sentence that a team lead can repeat."""
    scenario, memory, metrics = done.scenario, done.memory, done.metrics
    model = done.model.name.rsplit("/", 1)[-1]
    if not done.fits:
        cure = f"; {' or '.join(memory.remedies[:2])} would do" if memory.remedies else ""
        gpus = scenario.parallelism.gpus_per_replica
        verb = "does not fit wholly on" if memory.outcome == PARTLY_ON_CPU else "does not start on"
        return f"{model} {verb} {gpus} × {done.gpu.name}: {refusal_in_short(memory)}{cure}."
    assert metrics is not None
    assert done.cost is not None
    fleet, who = f"{done.num_gpus:,} × {done.gpu.name}", f"{clients_in_words(done)} of {model}"
    lost = _lost(metrics)
    if metrics.num_finished == 0:
        return f"{fleet} cannot serve {who}: {lost or 'no request is finished'}."
    latencies = (
        (f"p{scenario.target_quantile * 100:g} first token {{}}", metrics.ttft_s.at(scenario.target_quantile)),
        ("{} per token", metrics.tpot_s.at(scenario.target_quantile)),
    )
    told = [text.format(format_duration(value)) for text, value in latencies if math.isfinite(value)]
    numbers = ", ".join([*told, f"{format_usd(done.cost.usd_per_million_tokens)} per million tokens"])
    if done.slo_met:
        return f"{fleet} {'serve' if done.num_gpus > 1 else 'serves'} {who}: {numbers}."
    assert done.curve is not None
    most = done.curve.capacity_rps * serving_replicas(done)
    if scenario.is_open_loop and most < scenario.peak_rate_rps:
        return (
            f"{fleet} cannot keep up with {who}: {format_number(most)} req/s is the most, so the queue keeps growing."
        )
    return (
        f"{fleet} cannot hold the targets for {who}: {numbers}; "
        f"{format_percent(metrics.slo_attainment)} of requests meet them{', ' if lost else ''}{lost}."
    )


def _lost(metrics: ServingMetrics) -> str:
    """Who gets no answer, where that is one in a hundred or more."""
    kinds = ((metrics.num_rejected, "of requests are rejected"), (metrics.num_abandoned, "of clients leave"))
    shares = [(count / max(1, metrics.num_requests), text) for count, text in kinds]
    return ", ".join(f"{format_percent(share)} {text}" for share, text in shares if share >= 0.01)


def reasons(done: Plan) -> tuple[str, ...]:
    """Why this answer, in sentences made from the numbers."""
    assert done.curve is not None
    assert done.cost is not None
    said = [_why_so_many(done)]
    if done.replicas_for_slo is None and not done.slo_met:
        said.append(_why_not_even_idle(done))
    elif done.slo_met and done.curve.slo_rate_rps and done.scenario.is_open_loop:
        room = done.curve.slo_rate_rps * serving_replicas(done)
        times = room / done.scenario.peak_rate_rps
        if times > 1.001:
            more = f"{format_percent(times - 1)} more than" if times < 3 else f"{format_number(times)} times"
            said.append(f"The fleet holds the targets up to about {format_number(room)} req/s, {more} the peak.")
    if done.cost.break_even_requests_per_month:
        said.append(
            f"A hosted API ({done.cost.api_source}) becomes cheaper below "
            f"{format_number(done.cost.break_even_requests_per_month)} requests a month; this plan serves "
            f"{format_number(done.cost.requests_per_month)}."
        )
    return tuple(said)


def _why_so_many(done: Plan) -> str:
    decisive = max(done.chain, key=lambda link: link.gpus)
    have = done.num_gpus
    if decisive.gpus <= done.scenario.parallelism.gpus_per_replica:
        enough = "One replica is enough on every count: weights, KV cache, throughput and latency targets"
        return f"{enough}; {done.num_replicas:,} were entered." if done.num_replicas > 1 else f"{enough}."
    if math.isinf(decisive.gpus):
        return f"{decisive.reason}: {decisive.detail}."
    if decisive.gpus == have:
        return f"{decisive.reason} sets the number of GPUs: {decisive.detail}."
    return (
        f"{decisive.reason} asks for {counted(int(decisive.gpus), 'GPU')}, this plan has {have:,}: {decisive.detail}."
    )


def _why_not_even_idle(done: Plan) -> str:
    """What stands in the way when a replica with hardly anything to do misses the targets."""
    assert done.metrics is not None
    assert done.curve is not None
    scenario, memory = done.scenario, done.memory
    no_help = "more replicas do not help"
    if not done.curve.points:
        return (
            f"No prompt is served: each is longer than the context of {memory.max_model_len:,} tokens or than the KV "
            f"cache holds: {no_help}, a longer context or shorter prompts do."
        )
    idle, quantile = done.curve.points[0].metrics, scenario.target_quantile
    first, each = idle.ttft_s.at(quantile), idle.tpot_s.at(quantile)
    if first > scenario.ttft_target_s or each > scenario.tpot_target_s:
        return (
            f"Even an idle replica takes {format_duration(first)} to the first token and {format_duration(each)} per "
            f"token: {no_help}, a faster GPU, more tensor parallelism or a smaller model does."
        )
    if idle.slo_attainment >= quantile and scenario.is_open_loop:
        router = scenario.router.replace("_", " ")
        return (
            f"One replica holds the targets at its share of the rate, yet the router ({router}) "
            f"deals requests so unevenly that some are overrun: {no_help}, another router or more different prompts do."
        )
    left, refused = idle.num_abandoned / idle.num_requests, idle.num_rejected / idle.num_requests
    if left > 0 and left >= refused:
        limits = ((scenario.patience_s, "patience"), (scenario.timeout_s, "timeout"))
        own = " and ".join(f"a {text} of {format_duration(limit)}" for limit, text in limits if limit is not None)
        return (
            f"Even at an idle replica {format_percent(left)} of clients leave, with {own}: {no_help}, clients that "
            "wait longer, shorter answers or a faster GPU do."
        )
    if refused > 0:
        return (
            f"Even an idle replica rejects {format_percent(refused)} of the requests, which count as missing the "
            f"targets: {no_help}, a longer context or shorter prompts do."
        )
    return (
        f"Even an idle replica meets both targets for only {format_percent(idle.slo_attainment)} of requests, "
        f"{format_percent(quantile)} are asked for: {no_help}, a faster GPU, more tensor parallelism or a smaller "
        "model does."
    )
