"""Advice: what to question in a plan whose inputs are all valid.

Each finding is one function with one message. Mistakes 1 to 5 are the common ones of the seed article; the rest are
sizing traps. What the simulation and the bill show is in `advice_on_results`.
"""

from __future__ import annotations

from planner.answer.advice_on_results import (
    abandons,
    average_hides_tail,
    hosted_instead,
    preempts,
    price_assumed,
    rejects,
    unserved,
)
from planner.answer.confidence import calibrated_load
from planner.answer.finding import Finding
from planner.answer.kernels import KernelNote
from planner.catalog import recalled_facts, recalled_figures
from planner.cost import CostPlan
from planner.inputs import Batching, KvReservation
from planner.memory import MemoryPlan
from planner.scenario import CONFIG, CUSTOM, SCALES, Scenario
from planner.service import ServingMetrics
from planner.units import GIB, counted, format_number

SHORT_PROMPT_TOKENS = 256
MOST_SLOTS = 32  # LoRA slots to suggest: each takes memory
EVIDENCE = "kernels measured on "  # how sure the figures are, which is no warning: the verdict says it


def findings(
    scenario: Scenario,
    memory: MemoryPlan,
    metrics: ServingMetrics | None,
    cost: CostPlan | None,
    *,
    mean_prompt_tokens: float,
    mean_output_tokens: float,
    notes: tuple[str, ...] = (),
    kernels: KernelNote | None = None,
) -> tuple[Finding, ...]:
    """Every finding that applies to a plan, warnings first; `notes` are estimates to mention as well."""
    found = [
        calibration(scenario),
        other_log(scenario),
        one_request_at_a_time(scenario),
        only_short_prompts(scenario, mean_prompt_tokens, mean_output_tokens),
        cache_ignored(scenario, memory),
        runs_short(memory),
        start_in_doubt(memory),
        weights_kernels(kernels),
        lora_slots(scenario, memory),
    ]
    if metrics is not None:
        found += [
            average_hides_tail(scenario, metrics),
            rejects(scenario, metrics),
            abandons(scenario, metrics),
            preempts(metrics),
        ]
        found.append(idle_replicas(scenario))
    if cost is not None and metrics is not None:
        found += [unserved(scenario, metrics, cost)]
    if cost is not None:
        found += [price_assumed(scenario), hosted_instead(cost)]
    found += [reserved_cache(scenario, memory), cross_node(scenario), decode_only_note(scenario)]
    found += [
        small_budget(scenario),
        one_prompt_one_replica(scenario),
        shared_prompt_kept_apart(scenario),
        without_effect(scenario),
        unsourced_gpu(scenario),
        unsourced_model(scenario),
    ]
    found += [
        Finding(kind="estimate", severity="note", text=_as_sentence(text))
        for text in (*(note for note in memory.notes if note != memory.doubt), *notes)
        if not text.startswith(EVIDENCE)
    ]
    kept = [finding for finding in found if finding is not None]
    return tuple(sorted(kept, key=lambda finding: finding.severity != "warning"))


def _as_sentence(text: str) -> str:
    """With a full stop, and with a capital unless it begins with a name such as vLLM."""
    begun = text[:1].upper() + text[1:] if text.partition(" ")[0].islower() else text
    return begun if begun.endswith(".") else f"{begun}."


def calibration(scenario: Scenario) -> Finding | None:
    """Whether the speeds rest on the user's own runs, or why their calibration does not apply."""
    if not scenario.calibration_runs:
        return None
    runs, other = counted(scenario.calibration_runs, "measurement"), scenario.not_calibrated_for
    if other:
        return Finding(
            kind="calibration",
            severity="warning",
            field="calibration_of",
            text=f"Not calibrated: your {runs} came from another {' and another '.join(other)}. The speeds are "
            "those of the published kernels.",
        )
    if scenario.is_calibrated_for_other_load:
        return Finding(
            kind="calibration",
            severity="warning",
            field="calibration_load",
            text=f"The calibration to your {runs} was made for {calibrated_load(scenario)}, not for this traffic, and "
            "may be off here: the ranges are those of published runs. Calibrate again to the same runs.",
        )
    factors = ", ".join(f"{part} × {getattr(scenario, name):.3g}" for part, name in SCALES.items())
    return Finding(
        kind="calibration",
        severity="note",
        field="calibration_weights",
        text=f"Every latency, throughput and cost is calibrated to your {runs}: measured ÷ predicted times are "
        f"{factors}.",
    )


def other_log(scenario: Scenario) -> Finding | None:
    """The memory that an engine printed is of another deployment, so the plan uses the estimate."""
    other = scenario.not_printed_for
    if not other:
        return None
    return Finding(
        kind="printed_memory",
        severity="warning",
        field="printed_of",
        text=f"The memory is estimated: what your engine printed belongs to another {' and another '.join(other)}.",
    )


def weights_kernels(note: KernelNote | None) -> Finding | None:
    """The engine has no native kernels for the planned weights on this GPU, or nobody says that it has."""
    if note is None:
        return None
    return Finding(
        kind="kernel_support", severity=note.severity, field="weight_dtype", text=note.text, change=note.change
    )


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
        text="One request at a time: the GPU reads all the weights to produce a single token. Let it batch, and "
        "measure under load.",
    )


def only_short_prompts(scenario: Scenario, prompt: float, output: float) -> Finding | None:
    """Mistake 2: planning with short prompts while long contexts are allowed."""
    if prompt >= SHORT_PROMPT_TOKENS or prompt + output > scenario.max_model_len / 4:
        return None
    return Finding(
        kind="short_prompts",
        severity="warning",
        field="max_model_len",
        text=f"Only short prompts: they average {format_number(prompt)} tokens, but the context allows "
        f"{scenario.max_model_len:,}. Long contexts are where memory runs out; plan with the longest prompts you "
        "expect, too.",
    )


def cache_ignored(scenario: Scenario, memory: MemoryPlan) -> Finding | None:
    """Mistake 4: sizing by the weights and ignoring the KV cache."""
    if memory.weights_bytes >= memory.total_bytes or (memory.state_bytes and not memory.starts):
        return None
    pool = memory.kv_pool_bytes / GIB
    # llama.cpp's cache is as large as context and slots ask for, not as the memory leaves.
    more = memory.free_bytes / GIB / pool if scenario.engine_settings.family == "llamacpp" and pool > 0 else 0.0
    if memory.starts and memory.max_concurrency * (1 + more) >= 4:
        return None
    left = f"only {pool:.1f} GiB for the KV cache" if pool > 0 else "nothing for the KV cache"
    most = memory.max_concurrency
    room = counted(most, "sequence") if most >= 1 else "not even one sequence"
    holds = f": {room} of {memory.max_model_len:,} tokens at once" if pool > 0 else ""
    return Finding(
        kind="cache_ignored",
        severity="warning",
        field="max_model_len",
        text=f"The weights fit ({memory.weights_bytes / GIB:.1f} of {memory.total_bytes / GIB:.1f} GiB), but leave "
        f"{left}{holds}.",
    )


def runs_short(memory: MemoryPlan) -> Finding | None:
    """The engine starts, but CUDA graphs and a full step do not fit together."""
    if not memory.is_short:
        return None
    without = "CUDA graphs" if memory.activations_in_budget else "activations and CUDA graphs"
    return Finding(
        kind="runs_short",
        severity="warning",
        field="gpu_memory_utilization",
        text=f"The engine starts but sets no memory aside for {without}. A full step of "
        f"{counted(memory.max_num_batched_tokens, 'token')} needs {-memory.free_bytes / GIB:.2f} GiB more than the GPU "
        f"has (CUDA graphs estimated at {memory.cuda_graph_bytes / GIB:.2f} GiB), so it can run out of memory under "
        "load. Lower the GPU memory utilization.",
    )


def start_in_doubt(memory: MemoryPlan) -> Finding | None:
    """The same command may start or refuse, as its KV pool differs between starts by more than it has to spare."""
    if not memory.doubt:
        return None
    changes = memory.settled_by.changes if memory.settled_by is not None else {}
    return Finding(
        kind="start_in_doubt",
        severity="warning",
        field=next(iter(changes), "gpu_memory_utilization"),
        text=memory.doubt,
        change=changes,
    )


def idle_replicas(scenario: Scenario) -> Finding | None:
    """More replicas than closed-loop users or requests in the burst."""
    share = scenario.concurrent_users if scenario.arrivals == "closed" else scenario.num_requests
    replicas = scenario.fixed_replicas or 1
    if scenario.is_open_loop or scenario.asks == "take" or replicas <= share:
        return None
    idle = replicas - share
    what = "user" if scenario.arrivals == "closed" else "request"
    return Finding(
        kind="idle_replicas",
        severity="warning",
        field="num_replicas",
        text=f"{idle:,} of {replicas:,} replicas {'stays' if idle == 1 else 'stay'} idle: there "
        f"{'is' if share == 1 else 'are'} only {counted(share, what)}.",
    )


def reserved_cache(scenario: Scenario, memory: MemoryPlan) -> Finding | None:
    """Reserving max_model_len for every request wastes the KV pool."""
    if scenario.engine_settings.kv_reservation is not KvReservation.MODEL_LIMIT or not memory.starts:
        return None
    return Finding(
        kind="reserved",
        severity="warning",
        field="engine",
        text=f"This engine reserves {scenario.max_model_len:,} tokens of KV cache for every request, so it "
        f"holds at most {counted(memory.typical_concurrency_reserved, 'sequence')} of this traffic at once; paged, "
        f"the same pool holds {int(memory.typical_concurrency_paged):,}.",
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
        text=f"Tensor × attention data parallel = {wide} GPUs, more than one node of {node}. The all-reduces would "
        "cross the network, which Headroom does not model. Use pipeline parallelism between nodes.",
    )


def decode_only_note(scenario: Scenario) -> Finding | None:
    """A burst is a benchmark, not traffic."""
    if scenario.arrivals != "once":
        return None
    return Finding(
        kind="all_at_once",
        severity="note",
        field="arrivals",
        text="All requests arrive at once, so TTFT is mostly queueing. Read this plan for throughput, not for latency.",
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
        "any others stay idle.",
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
        text=f"vLLM refuses to start with max_num_batched_tokens ({budget:,}) below max_num_seqs ({seqs:,}); planned "
        f"with max_num_seqs {budget:,}.",
    )


def shared_prompt_kept_apart(scenario: Scenario) -> Finding | None:
    """Without prefix caching, every request computes and stores the shared system prompt again."""
    if not scenario.shared_prefix_tokens or scenario.engine_settings.enable_prefix_caching:
        return None
    return Finding(
        kind="prefix_not_cached",
        severity="note",
        field="enable_prefix_caching",
        text=f"Prefix caching is off: each request computes and stores the {scenario.shared_prefix_tokens:,} shared "
        "tokens again.",
    )


def lora_slots(scenario: Scenario, memory: MemoryPlan) -> Finding | None:
    """More LoRA adapters than a batch can mix: requests for the others wait until it has no request of one."""
    slots, adapters = scenario.engine_settings.max_loras, scenario.num_lora_adapters
    if not memory.starts or not adapters or adapters <= slots:
        return None
    whose = "as set" if scenario.max_loras is not None else f"the default of {scenario.engine}"
    wanted = min(adapters, MOST_SLOTS)
    return Finding(
        kind="lora_slots",
        severity="warning",
        field="max_loras",
        text=f"{adapters:,} LoRA adapters share {counted(slots, 'slot')} on each replica (max_loras, {whose}): "
        f"requests for another adapter wait until {'it is' if slots == 1 else 'one is'} free, which can cost many "
        f"times the GPUs. Set LoRA adapters per batch to {wanted:,}; each slot takes memory.",
        change={"max_loras": wanted},
    )


_FIGURES = {
    "memory_gib": "memory",
    "memory_bandwidth_gb_s": "memory bandwidth",
    "link_gb_s": "link between GPUs",
    "bf16_tflops": "BF16 TFLOPS",
    "fp16_tflops": "FP16 TFLOPS",
    "fp8_tflops": "FP8 TFLOPS",
    "fp4_tflops": "FP4 TFLOPS",
    "int8_tops": "INT8 TOPS",
    "tdp_w": "TDP",
}


def unsourced_gpu(scenario: Scenario) -> Finding | None:
    """Figures of the GPU that the catalog estimates, or has from memory."""
    if scenario.gpu == CUSTOM:
        return None
    estimated = scenario.gpu_spec.estimated_fields
    recalled = tuple(name for name in recalled_figures(scenario.gpu) if name not in estimated)
    parts = [
        f"{words} ({', '.join(_FIGURES.get(name, name.replace('_', ' ')) for name in names)})"
        for words, names in (("estimated", estimated), ("recalled, not read from a source", recalled))
        if names
    ]
    if not parts:
        return None
    return Finding(
        kind="unsourced",
        severity="note",
        field="gpu",
        text=f"Some catalog figures of {scenario.gpu} are {' and '.join(parts)}. Check them on the data sheet, or "
        "enter a GPU by hand.",
    )


_FACTS = {
    "config": "config.json",
    "vision_config": "the vision tower's config",
    "published_parameters": "the published number of parameters",
}


def unsourced_model(scenario: Scenario) -> Finding | None:
    """Facts of the model that the catalog has from memory."""
    if scenario.model in (CUSTOM, CONFIG):
        return None
    facts = [_FACTS.get(name, name.replace("_", " ")) for name in recalled_facts(scenario.model)]
    if not facts:
        return None
    return Finding(
        kind="unsourced",
        severity="note",
        field="model",
        text=f"Recalled of {scenario.model}, not read from a source: {' and '.join(facts)}. Paste its config.json to "
        "be sure.",
    )


def without_effect(scenario: Scenario) -> Finding | None:
    """Settings that the other settings make irrelevant."""
    idle = []
    if scenario.draft_model and not scenario.num_speculative_tokens:
        idle.append("the draft model (speculative tokens are 0)")
    if scenario.max_loras is not None and not scenario.num_lora_adapters:
        idle.append("LoRA adapters per batch (no adapters are served)")
    if not scenario.is_disaggregated and (scenario.prefill_replicas or scenario.decode_replicas):
        idle.append("prefill and decode replicas (one replica does both)")
    if scenario.kv_offload_gib and not scenario.engine_settings.enable_prefix_caching:
        idle.append("KV offload (prefix caching is off)")
    if scenario.async_scheduling == "off" and scenario.engine_settings.family != "vllm":
        idle.append("async scheduling (modelled for vLLM only)")
    states = any(layer.mixer.is_state for layer in scenario.model_shape.layer_kinds)
    pooled = states and scenario.engine_settings.family == "sglang"
    if scenario.max_state_slots is not None and not pooled:
        idle.append("states kept (only for hybrid models on SGLang)")
    told = scenario.max_state_slots or (not scenario.enable_prefix_caching and scenario.max_num_seqs)
    if scenario.mamba_full_memory_ratio is not None and (told or not pooled):
        idle.append("state memory ratio (only for hybrid models on SGLang when the number of states is not set)")
    if scenario.state_dtype != "auto" and (not states or scenario.engine_settings.family == "llamacpp"):
        idle.append("state type (only for models with recurrent states; llama.cpp keeps them in fp32)")
    tower = scenario.published_shape.vision_tower
    videos = tower is not None and tower.videos_as_images
    if scenario.media == "none" and not scenario.published_shape.vision_parameters:
        idle.append("text only (the model has no vision tower)")
    if scenario.media == "images" and not (videos and scenario.engine_settings.family == "vllm"):
        idle.append("images without video (only Qwen2-VL and Qwen2.5-VL on vLLM set aside more memory for video)")
    splits = dict(scenario.model_shape.encoder_splits)
    if scenario.encoder_data_parallel and splits.get(scenario.engine_settings.family) != "images":
        idle.append("whole vision tower on every GPU (the engine has it for some vision models only)")
    if scenario.ngram_tables != "auto" and not scenario.model_shape.ngram_parameters:
        idle.append("n-gram tables (the model has none)")
    if scenario.router != "round_robin" and not scenario.is_open_loop:
        idle.append("the router (closed-loop users and bursts are split evenly)")
    if scenario.router == "prefix_affinity" and not scenario.shared_prefix_tokens:
        idle.append("prefix affinity (no shared system prompt, so requests go round robin)")
    if not idle:
        return None
    return Finding(
        kind="without_effect", severity="note", text=f"These settings have no effect here: {', '.join(idle)}."
    )
