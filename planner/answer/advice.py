"""Advice: what a plan gets wrong although every input is valid, in the user's words.

Each finding is one function with one message. The first five are the common mistakes that the seed
article lists; the rest are traps of sizing.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.cost import CostPlan
from planner.inputs import Batching, KvReservation
from planner.memory import MemoryPlan
from planner.scenario import Scenario
from planner.service import ServingMetrics
from planner.units import GIB, HOURS_PER_MONTH, counted, format_duration, format_number, format_percent, format_usd

SHORT_PROMPT_TOKENS = 256
FEW_REQUESTS_PER_DAY = 10_000
DAYS_PER_MONTH = HOURS_PER_MONTH / 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One piece of advice.

    `kind` is a stable name, `severity` is "warning" or "note", `field` the input that it speaks of.
    """

    kind: str
    severity: str
    text: str
    field: str = ""


def findings(
    scenario: Scenario,
    memory: MemoryPlan,
    metrics: ServingMetrics | None,
    cost: CostPlan | None,
    mean_prompt_tokens: float,
    mean_output_tokens: float,
    notes: tuple[str, ...] = (),
) -> tuple[Finding, ...]:
    """Collect every finding that applies to a plan, most serious first; `notes` are further estimates to tell."""
    found = [
        one_request_at_a_time(scenario),
        only_short_prompts(scenario, mean_prompt_tokens, mean_output_tokens),
        cache_ignored(memory),
        runs_short(memory),
    ]
    if metrics is not None:
        found += [average_hides_tail(metrics), rejects(metrics), abandons(scenario, metrics), preempts(metrics)]
        found.append(lora_slots(scenario, metrics))
        found.append(idle_replicas(scenario))
    if cost is not None and metrics is not None:
        found += [unserved(scenario, metrics, cost)]
    if cost is not None:
        found.append(api_cheaper(cost))
    found += [reserved_cache(scenario, memory), cross_node(scenario), decode_only_note(scenario)]
    found += [
        small_budget(scenario),
        one_prompt_one_replica(scenario),
        shared_prompt_kept_apart(scenario),
        without_effect(scenario),
    ]
    found += [
        Finding(kind="estimate", severity="note", text=text[:1].upper() + text[1:]) for text in (*memory.notes, *notes)
    ]
    kept = [finding for finding in found if finding is not None]
    return tuple(sorted(kept, key=lambda finding: finding.severity != "warning"))


def one_request_at_a_time(scenario: Scenario) -> Finding | None:
    """Mistake 1: measuring or serving with one request at a time."""
    alone = scenario.engine_settings.batching is Batching.SINGLE or scenario.max_num_seqs == 1
    closed = scenario.arrivals == "closed" and scenario.concurrent_users == 1
    if not (alone or closed):
        return None
    return Finding(
        kind="one_at_a_time",
        severity="warning",
        field="engine" if alone else "concurrent_users",
        text="One request at a time: the GPU reads all weights for a single token. A serving system shows its value "
        "under load; let it batch.",
    )


def only_short_prompts(scenario: Scenario, prompt: float, output: float) -> Finding | None:
    """Mistake 2: planning with short prompts while long contexts are allowed."""
    if prompt >= SHORT_PROMPT_TOKENS or prompt + output > scenario.max_model_len / 4:
        return None
    return Finding(
        kind="short_prompts",
        severity="warning",
        field="max_model_len",
        text=f"Only short prompts: the traffic averages {format_number(prompt)} prompt tokens, yet contexts up to "
        f"{scenario.max_model_len:,} are allowed. Long contexts are where memory runs out; plan with the longest "
        "real ones too.",
    )


def average_hides_tail(metrics: ServingMetrics) -> Finding | None:
    """Mistake 3: reporting the average and hiding the tail."""
    mean, p99 = metrics.ttft_s.mean, metrics.ttft_s.p99
    if not (mean > 0 and p99 > 3 * mean and p99 > 0.2):
        return None
    return Finding(
        kind="average_only",
        severity="warning",
        text=f"The average hides the tail: mean TTFT is {format_duration(mean)}, but one request in a hundred waits "
        f"{format_duration(p99)} or longer.",
    )


def cache_ignored(memory: MemoryPlan) -> Finding | None:
    """Mistake 4: sizing by the weights and ignoring the cache."""
    if memory.weights_bytes >= memory.total_bytes or (memory.state_bytes and not memory.starts):
        return None
    if memory.starts and memory.max_concurrency >= 4:
        return None
    pool = max(0.0, memory.kv_pool_bytes) / GIB
    return Finding(
        kind="cache_ignored",
        severity="warning",
        field="max_model_len",
        text=f"The weights fit ({memory.weights_bytes / GIB:.1f} of {memory.total_bytes / GIB:.1f} GiB), but the KV "
        f"cache gets only {pool:.1f} GiB: {counted(memory.max_concurrency, 'sequence')} of "
        f"{memory.max_model_len:,} tokens at once. The weights are not the only thing that must fit.",
    )


def runs_short(memory: MemoryPlan) -> Finding | None:
    """The engine starts, yet CUDA graphs and a full step do not find room together."""
    if not memory.is_short:
        return None
    without = "CUDA graphs" if memory.activations_in_budget else "activations and CUDA graphs"
    return Finding(
        kind="runs_short",
        severity="warning",
        field="gpu_memory_utilization",
        text=f"The engine starts, but sets no memory aside for {without}: with {memory.cuda_graph_bytes / GIB:.2f} GiB "
        f"of graphs (an estimate) a step of {counted(memory.max_num_batched_tokens, 'token')} needs "
        f"{-memory.free_bytes / GIB:.2f} GiB more than the GPU has, so that it can run out of memory under load. "
        "A lower GPU memory utilization leaves room.",
    )


def api_cheaper(cost: CostPlan) -> Finding | None:
    """Mistake 5: self-hosting for a few thousand requests a day; and the same trap at larger volumes."""
    if not cost.api_is_cheaper or cost.api_usd_per_month is None:
        return None
    per_day = cost.requests_per_month / DAYS_PER_MONTH
    few = per_day <= FEW_REQUESTS_PER_DAY
    bills = (
        f"{format_number(per_day)} {'request' if per_day == 1 else 'requests'} a day cost "
        f"{format_usd(cost.usd_per_month)} a month here and "
        f"{format_usd(cost.api_usd_per_month)} from a hosted API ({cost.api_source})"
    )
    size = "few thousand" if per_day >= 1000 else "few"
    return Finding(
        kind="few_requests" if few else "api_cheaper",
        severity="warning",
        text=f"Self-hosting for a {size} requests a day: {bills}, which is also simpler." if few else f"{bills}.",
    )


def unserved(scenario: Scenario, metrics: ServingMetrics, cost: CostPlan) -> Finding | None:
    """Not all that is asked for is finished, and prices count what is."""
    offered, served = cost.offered_requests_per_month, cost.requests_per_month
    if metrics.num_finished == 0 or not served:
        text = "No request is finished, so that no price per token exists: the bill buys nothing."
    elif served < 0.995 * offered:
        text = (
            f"{format_number(served)} of {format_number(offered)} requests a month are finished "
            f"({format_percent(served / offered)}); the prices per token and request count these alone."
        )
    elif scenario.is_open_loop and metrics.verdict == "overloaded":
        text = (
            f"At the peak {format_number(metrics.requests_per_s)} of {format_number(scenario.peak_rate_rps)} req/s are "
            "finished; the prices per token assume that clients wait until the peak is over."
        )
    else:
        return None
    return Finding(kind="unserved", severity="warning", text=text)


def idle_replicas(scenario: Scenario) -> Finding | None:
    """More replicas than users of a closed loop, or requests of a burst."""
    share = scenario.concurrent_users if scenario.arrivals == "closed" else scenario.num_requests
    replicas = scenario.num_replicas or 1
    if scenario.is_open_loop or replicas <= share:
        return None
    idle = replicas - share
    what = "user" if scenario.arrivals == "closed" else "request"
    return Finding(
        kind="idle_replicas",
        severity="warning",
        field="num_replicas",
        text=f"{idle:,} of {replicas:,} replicas {'stays' if idle == 1 else 'stay'} idle: there "
        f"{'is' if share == 1 else 'are'} {counted(share, what)} to deal to them.",
    )


def rejects(metrics: ServingMetrics) -> Finding | None:
    """Some requests are turned away."""
    if metrics.num_rejected == 0:
        return None
    share = metrics.num_rejected / max(1, metrics.num_requests)
    return Finding(
        kind="rejected",
        severity="warning",
        field="max_model_len",
        text=f"{format_percent(share)} of requests are rejected: longer than the context or the pool, or beyond the "
        "queue limit. They count as missing the target.",
    )


def abandons(scenario: Scenario, metrics: ServingMetrics) -> Finding | None:
    """Clients leave before their answer is there."""
    if metrics.num_abandoned == 0:
        return None
    share = metrics.num_abandoned / max(1, metrics.num_requests)
    limits = [("the first token", scenario.patience_s), ("the whole answer", scenario.timeout_s)]
    after = " or ".join(f"{format_duration(limit)} without {what}" for what, limit in limits if limit is not None)
    return Finding(
        kind="abandoned",
        severity="warning",
        field="patience_s" if scenario.patience_s is not None else "timeout_s",
        text=f"{format_percent(share)} of clients leave after {after}. They count as missing the target, and lighten "
        "the load for the others.",
    )


def preempts(metrics: ServingMetrics) -> Finding | None:
    """Sequences are evicted and recomputed."""
    share = metrics.num_preemptions / max(1, metrics.num_requests)
    if share < 0.01:
        return None
    return Finding(
        kind="preemption",
        severity="warning",
        text=f"KV cache runs out under load: {format_number(metrics.num_preemptions)} preemptions, each recomputed "
        "from the start. More KV memory or fewer sequences would stop that.",
    )


def reserved_cache(scenario: Scenario, memory: MemoryPlan) -> Finding | None:
    """Reserving the maximum for every request wastes the pool."""
    if scenario.engine_settings.kv_reservation is not KvReservation.MODEL_LIMIT or not memory.starts:
        return None
    return Finding(
        kind="reserved",
        severity="warning",
        field="engine",
        text=f"This engine reserves {scenario.max_model_len:,} tokens for every request: "
        f"{counted(memory.typical_concurrency_reserved, 'sequence')} at once instead of "
        f"{format_number(memory.typical_concurrency_paged)} with paged KV cache.",
    )


def cross_node(scenario: Scenario) -> Finding | None:
    """Tensor parallelism across nodes is slow."""
    node = scenario.gpu_spec.gpus_per_node
    wide = scenario.tensor_parallel_size * scenario.attention_data_parallel_size
    if wide <= node:
        return None
    return Finding(
        kind="cross_node",
        severity="warning",
        field="tensor_parallel_size",
        text=f"Tensor and attention data parallel {wide} span more than one node of {counted(node, 'GPU')}; their "
        "all-reduces would cross the network, which this model does not price. Use pipeline parallelism between nodes.",
    )


def decode_only_note(scenario: Scenario) -> Finding | None:
    """All at once is a benchmark, not traffic."""
    if scenario.arrivals != "once":
        return None
    return Finding(
        kind="all_at_once",
        severity="note",
        field="arrivals",
        text="All requests arrive together: time to first token is queueing here. Use it for throughput, not latency.",
    )


def one_prompt_one_replica(scenario: Scenario) -> Finding | None:
    """Prefix affinity with fewer prompts than replicas leaves replicas idle."""
    if scenario.router != "prefix_affinity" or not scenario.shared_prefix_tokens or scenario.num_prefix_groups >= 8:
        return None
    few = scenario.num_prefix_groups
    return Finding(
        kind="few_prefixes",
        severity="warning",
        field="router",
        text=f"With prefix affinity, {counted(few, 'system prompt')} can keep at most {counted(few, 'replica')} busy; "
        "the others stay idle.",
    )


def small_budget(scenario: Scenario) -> Finding | None:
    """A token budget below the number of sequences, which vLLM refuses."""
    budget, seqs = scenario.max_num_batched_tokens, scenario.max_num_seqs
    if scenario.engine_settings.family != "vllm" or budget is None or seqs is None or budget >= seqs:
        return None
    return Finding(
        kind="small_budget",
        severity="warning",
        field="max_num_batched_tokens",
        text=f"max_num_batched_tokens ({budget:,}) is below max_num_seqs ({seqs:,}), which vLLM refuses at the start; "
        f"planned with {budget:,} sequences.",
    )


def shared_prompt_kept_apart(scenario: Scenario) -> Finding | None:
    """A common system prompt is computed and held again for every request."""
    if not scenario.shared_prefix_tokens or scenario.engine_settings.enable_prefix_caching:
        return None
    return Finding(
        kind="prefix_not_cached",
        severity="note",
        field="enable_prefix_caching",
        text=f"The {scenario.shared_prefix_tokens:,} tokens that all prompts share are computed and held for each "
        "request anew: this engine, as set, caches no prefixes.",
    )


def lora_slots(scenario: Scenario, metrics: ServingMetrics) -> Finding | None:
    """Requests wait for an adapter's slot."""
    slots = scenario.engine_settings.max_loras
    if not scenario.num_lora_adapters or metrics.binding != "lora slots":
        return None
    return Finding(
        kind="lora_slots",
        severity="warning",
        field="max_loras",
        text=f"{scenario.num_lora_adapters:,} LoRA adapters share {counted(slots, 'slot')} on each "
        "replica: a request waits until its adapter may enter. More adapters per batch would end that, for memory.",
    )


def without_effect(scenario: Scenario) -> Finding | None:
    """Settings that do nothing beside the others."""
    idle = []
    if scenario.draft_model and not scenario.num_speculative_tokens:
        idle.append("the draft model (no tokens are drafted)")
    if scenario.max_loras is not None and not scenario.num_lora_adapters:
        idle.append("LoRA adapters per batch (no adapter is served)")
    if scenario.kv_offload_gib and not scenario.engine_settings.enable_prefix_caching:
        idle.append("KV offload (prefix caching is off)")
    if scenario.async_scheduling == "off" and scenario.engine_settings.family != "vllm":
        idle.append("async scheduling (its effect is known for vLLM's cache only)")
    states = any(layer.mixer.is_state for layer in scenario.model_shape.layer_kinds)
    pooled = states and scenario.engine_settings.family == "sglang"  # states have a pool of their own
    if scenario.max_state_slots is not None and not pooled:
        idle.append("states kept (a setting of SGLang for models with states)")
    told = scenario.max_state_slots or (not scenario.enable_prefix_caching and scenario.max_num_seqs)
    if scenario.mamba_full_memory_ratio is not None and (told or not pooled):
        idle.append("the memory of states to cache (of models with states in SGLang that tell no number of states)")
    if scenario.state_dtype != "auto" and (not states or scenario.engine_settings.family == "llamacpp"):
        idle.append("the type of states (of models that have some; llama.cpp keeps them in fp32)")
    tower = scenario.published_shape.vision_tower
    videos = tower is not None and tower.videos_as_images
    if scenario.media == "none" and not scenario.published_shape.vision_parameters:
        idle.append("text only (the model has no vision tower)")
    if scenario.media == "images" and not (videos and scenario.engine_settings.family == "vllm"):
        idle.append("images without video (only Qwen2-VL and 2.5-VL in vLLM keep more memory for a video)")
    if scenario.ngram_tables != "auto" and not scenario.model_shape.ngram_parameters:
        idle.append("the place of n-gram tables (the model has none)")
    if scenario.router != "round_robin" and not scenario.is_open_loop:
        idle.append("the router (the users are dealt out evenly)")
    if scenario.router == "prefix_affinity" and not scenario.shared_prefix_tokens:
        idle.append("prefix affinity (no system prompt is shared; requests go round)")
    if not idle:
        return None
    return Finding(kind="without_effect", severity="note", text=f"Without effect as set: {', '.join(idle)}.")
