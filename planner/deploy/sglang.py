"""The `python -m sglang.launch_server` command of a plan."""

from __future__ import annotations

import math

from planner.answer import Plan
from planner.catalog import get_engine
from planner.deploy.launch import HEAD, Launch, Options
from planner.deploy.settings import counted_on, missing_frontend, release, unmet_settings
from planner.deploy.weights import Weights, missing_checkpoint, plain_awq_option, started_options
from planner.units import GIB

COMMAND = "sglang.launch_server"
PORT = 30_000
ONLINE = {"fp8": "fp8"}  # --quantization that converts a 16-bit checkpoint while loading
KV_TYPES = {"bf16": "bfloat16", "fp8": "fp8_e4m3"}
TOLD = (
    *("tensor_parallel_size", "pipeline_parallel_size", "attention_data_parallel_size", "expert_parallel"),
    *("kv_cache_dtype", "gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens", "enable_prefix_caching"),
    *("chunked_prefill", "async_scheduling", "block_size", "state_dtype", "media", "kv_offload_gib"),
    *(
        "num_speculative_tokens",
        "num_lora_adapters",
        "max_loras",
        "max_lora_rank",
        "enforce_eager",
        "max_cudagraph_capture_size",
    ),
    *("max_total_tokens", "max_state_slots", "mamba_full_memory_ratio", "moe_runner_backend"),
    *("stream_interval_tokens", "receive_interval_steps", "offline", "plain_awq", "behind_dynamo"),
    "encoder_data_parallel",
)


def sglang_launch(plan: Plan) -> Launch:
    """How to start one replica of a plan with SGLang.

    Parameters
    ----------
    plan : Plan
        Its scenario says what the user set; everything else stays at SGLang's defaults.

    Returns
    -------
    Launch
        Flags that this release has. Source: server_args.py of each release (catalog/engine_flags.csv).
    """
    version = release(plan)
    options, weights = started_options(plan, COMMAND, "SGLang")
    options.add("--model-path", weights.id)
    _weights(plan, options, weights)
    options.add("--context-length", plan.scenario.max_model_len)
    _parallelism(plan, options)
    _limits(plan, options)
    _switches(plan, options)
    _states_and_cache(plan, options)
    _speculation(plan, options)
    _adapters(plan, options)
    nodes = math.ceil(plan.scenario.parallelism.gpus_per_replica / plan.gpu.gpus_per_node)
    memory, given = plan.memory, plan.scenario
    options.notes += counted_on(
        [
            ("--mem-fraction-static", given.gpu_memory_utilization, memory.gpu_memory_utilization),
            ("--max-running-requests", given.max_num_seqs, memory.max_num_seqs),
            ("--chunked-prefill-size", given.max_num_batched_tokens, memory.max_num_batched_tokens),
        ]
    )
    return Launch(
        engine="sglang",
        title="SGLang",
        version=version,
        program=("python", "-m", "sglang.launch_server"),
        options=tuple(options.chosen),
        node_options=tuple(_node(node, nodes) for node in range(nodes)) if nodes > 1 else (),
        model=weights.id,
        port=PORT,
        health_path="/health",
        in_container=(("--host", "0.0.0.0"), ("--enable-metrics", None)),
        notes=tuple(options.notes),
        unmet=(*options.unmet, *unmet_settings(plan, TOLD, "SGLang")),
    )


def _node(node: int, nodes: int) -> tuple[tuple[str, str | None], ...]:
    return ("--nnodes", str(nodes)), ("--node-rank", str(node)), ("--dist-init-addr", f"{HEAD}:20000")


def _weights(plan: Plan, options: Options, weights: Weights) -> None:
    if weights.dtype:
        options.add("--dtype", weights.dtype)
    if plan.scenario.plain_awq:
        plain_awq_option(plan, options)
    if weights.convert:
        value = ONLINE.get(weights.convert)
        if value:
            options.add("--quantization", value)
            options.notes.append(f"SGLang quantises {weights.id} while it loads: the catalog knows no such checkpoint.")
        else:
            options.unmet.append(missing_checkpoint(weights))
    kind = plan.scenario.kv_cache_dtype
    if kind != "auto":
        name = KV_TYPES.get(kind, kind)
        if options.takes("--kv-cache-dtype", name):
            options.add("--kv-cache-dtype", name)
        else:
            options.unmet.append(f"KV cache = {kind}: SGLang has no cache of this type.")


def _parallelism(plan: Plan, options: Options) -> None:
    """SGLang's tensor-parallel size counts the ranks of data-parallel attention too."""
    scenario = plan.scenario
    attention = scenario.attention_data_parallel_size
    ranks = scenario.tensor_parallel_size * attention
    if ranks > 1:
        options.add("--tp-size", ranks)
    if scenario.pipeline_parallel_size > 1:
        options.add("--pp-size", scenario.pipeline_parallel_size)
    if attention > 1 and options.has("--attn-dp-size"):
        options.add("--attn-dp-size", attention)
    elif attention > 1:
        options.add("--dp-size", attention)
        options.add("--enable-dp-attention")
    if scenario.expert_parallel:
        options.add("--ep-size", ranks)
        if options.has("--enable-ep-moe"):
            options.add("--enable-ep-moe")


def _limits(plan: Plan, options: Options) -> None:
    scenario = plan.scenario
    attention = scenario.attention_data_parallel_size  # SGLang divides both limits by it
    if scenario.gpu_memory_utilization is not None:
        options.add("--mem-fraction-static", scenario.gpu_memory_utilization)
    if scenario.max_num_seqs is not None:
        options.add("--max-running-requests", scenario.max_num_seqs * attention)
    if not plan.engine.enable_chunked_prefill:
        options.add("--chunked-prefill-size", -1)
    elif scenario.max_num_batched_tokens is not None:
        options.add("--chunked-prefill-size", scenario.max_num_batched_tokens * attention)
    for flags, value in (
        ("--page-size", scenario.block_size),
        (("--cuda-graph-max-bs-decode", "--cuda-graph-max-bs"), scenario.max_cudagraph_capture_size),
        ("--max-total-tokens", scenario.max_total_tokens),
    ):
        if value is not None:
            options.add(flags, value)
    if scenario.stream_interval_tokens > 1:
        options.add("--stream-interval", scenario.stream_interval_tokens)
    if scenario.receive_interval_steps > 1:
        options.add("--scheduler-recv-interval", scenario.receive_interval_steps)


def _switches(plan: Plan, options: Options) -> None:
    usual, scenario = get_engine("sglang", plan.engine.version), plan.scenario
    if usual.enable_prefix_caching and not plan.engine.enable_prefix_caching:
        options.add("--disable-radix-cache")
    if usual.async_scheduling and not plan.engine.async_scheduling:
        options.add("--disable-overlap-schedule")
    if scenario.enforce_eager and options.has("--cuda-graph-backend-decode"):
        options.add("--cuda-graph-backend-decode", "disabled")
        options.add("--cuda-graph-backend-prefill", "disabled")
    elif scenario.enforce_eager:
        options.add("--disable-cuda-graph")
    if scenario.moe_runner_backend != "auto":
        options.add("--moe-runner-backend", scenario.moe_runner_backend)
    if scenario.media == "none":
        options.add("--language-model-only")
    elif scenario.encoder_data_parallel:
        options.add("--mm-enable-dp-encoder")
    if scenario.media == "images":
        options.unmet.append("Images and video = images: SGLang has no flag that leaves only video out.")
    options.unmet += missing_frontend(plan, "dynamo.sglang")
    if scenario.offline:
        options.notes.append("The plan calls SGLang in the process (its Engine class); this command starts a server.")


def _states_and_cache(plan: Plan, options: Options) -> None:
    scenario = plan.scenario
    if scenario.state_dtype != "auto":
        options.add("--mamba-ssm-dtype", scenario.state_dtype)
    if scenario.max_state_slots is not None:
        options.add("--max-mamba-cache-size", scenario.max_state_slots)
    if scenario.mamba_full_memory_ratio is not None:
        options.add("--mamba-full-memory-ratio", scenario.mamba_full_memory_ratio)
    if scenario.kv_offload_gib:
        ranks = scenario.parallelism.gpus_per_replica
        options.add("--enable-hierarchical-cache")
        options.add("--hicache-size", max(1, round(scenario.kv_offload_gib * GIB / 1e9 / ranks)))
        options.notes.append("--hicache-size is in GB for each rank: the plan's GiB of the whole replica, rounded.")


def _speculation(plan: Plan, options: Options) -> None:
    scenario, tokens = plan.scenario, plan.scenario.num_speculative_tokens
    if not tokens:
        return
    own = not scenario.draft_model and plan.model.mtp_parameters
    if not own and not scenario.draft_model:
        options.add("--speculative-algorithm", "NGRAM")
        options.add("--speculative-num-draft-tokens", tokens)
        return
    draft = scenario.draft_shape
    separate = "EAGLE3" if draft is not None and draft.draft_vocab_size else "STANDALONE"
    options.add("--speculative-algorithm", "NEXTN" if own else separate)
    if scenario.draft_model:
        options.add("--speculative-draft-model-path", scenario.draft_model)
    options.add("--speculative-num-steps", tokens)
    options.add("--speculative-eagle-topk", 1)
    options.add("--speculative-num-draft-tokens", tokens + 1)


def _adapters(plan: Plan, options: Options) -> None:
    scenario = plan.scenario
    if not scenario.num_lora_adapters:
        return
    if options.has("--enable-lora"):
        options.add("--enable-lora")
    if scenario.max_loras is not None:
        options.add("--max-loras-per-batch", scenario.max_loras)
    options.add("--max-lora-rank", scenario.max_lora_rank)
    options.notes.append(
        f"Add --lora-paths NAME=PATH … for the {scenario.num_lora_adapters:,} adapters that clients choose from."
    )
