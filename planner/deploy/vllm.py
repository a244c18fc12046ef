"""The `vllm serve` command of a plan."""

from __future__ import annotations

import json
import math

from planner.answer import Plan
from planner.catalog import get_engine
from planner.deploy.launch import HEAD, Launch, Options
from planner.deploy.settings import counted_on, missing_frontend, release, unmet_settings
from planner.deploy.weights import Weights, missing_checkpoint, plain_awq_option, started_options
from planner.inputs import first_of, release_of
from planner.memory import running_scheme
from planner.model import resolve_scheme

COMMAND = "vllm serve"
SERVE_SINCE = (0, 6)  # before, the server was a module
#: --quantization that converts a 16-bit checkpoint while loading, and the first release read with it
ONLINE = {
    "fp8": ("fp8", ""),
    "fp8_block": ("fp8_per_block", "0.20"),
    "mxfp8": ("mxfp8", "0.20"),
    "bnb_nf4": ("bitsandbytes", ""),
}
BITSANDBYTES_UNTIL = (0, 33)  # from then on a plugin
FALLS_BACK_SINCE = (0, 9)  # --dtype auto runs a bf16 checkpoint in float16 where the GPU has no bf16
KV_TYPES = {"bf16": "bfloat16", "fp16": "float16", "nvfp4": "nvfp4"}
LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
JSON_LIMITS_SINCE = (0, 8, 5)  # --limit-mm-per-prompt took image=4 before
MASTER_PORT_NODES = ("--nnodes", "--node-rank", "--master-addr")
TOLD = (
    *("tensor_parallel_size", "pipeline_parallel_size", "attention_data_parallel_size", "expert_parallel"),
    *("decode_context_parallel_size", "kv_cache_dtype", "gpu_memory_utilization", "max_num_seqs"),
    *("max_num_batched_tokens", "enable_prefix_caching", "chunked_prefill", "long_prefill_token_threshold"),
    *("async_scheduling", "block_size", "state_dtype", "media", "images_per_prompt", "kv_offload_gib"),
    *("num_speculative_tokens", "num_lora_adapters", "max_loras", "max_lora_rank", "engine_core", "enforce_eager"),
    *("max_cudagraph_capture_size", "latent_cache", "state_prefixes", "stream_interval_tokens", "offline"),
    *("plain_awq", "behind_dynamo", "encoder_data_parallel", "moe_runner_backend"),
)


def vllm_launch(plan: Plan) -> Launch:
    """How to start one replica of a plan with vLLM.

    Parameters
    ----------
    plan : Plan
        Its scenario says what the user set; everything else stays at vLLM's defaults.

    Returns
    -------
    Launch
        Flags that this release has. Source: `vllm serve` of each release (catalog/engine_flags.csv).
    """
    version = release(plan)
    options, weights = started_options(plan, COMMAND, "vLLM")
    _weights(plan, options, weights)
    options.add("--max-model-len", plan.scenario.max_model_len)
    _parallelism(plan, options)
    _limits(plan, options)
    _switches(plan, options)
    _memory(plan, options)
    _speculation(plan, options)
    _adapters(plan, options)
    nodes = _nodes(plan, options)
    memory, given = plan.memory, plan.scenario
    options.notes += counted_on(
        [
            ("--gpu-memory-utilization", given.gpu_memory_utilization, memory.gpu_memory_utilization),
            ("--max-num-seqs", given.max_num_seqs, memory.max_num_seqs),
            ("--max-num-batched-tokens", given.max_num_batched_tokens, memory.max_num_batched_tokens),
        ]
    )
    old = release_of(version) < SERVE_SINCE
    module = ("python", "-m", "vllm.entrypoints.openai.api_server", "--model")
    return Launch(
        engine="vllm",
        title="vLLM",
        version=version,
        program=(*(module if old else ("vllm", "serve")), weights.id),
        options=tuple(options.chosen),
        node_options=nodes,
        env=_environment(plan),
        model=weights.id,
        port=8000,
        health_path="/health",
        notes=tuple(options.notes),
        unmet=(*options.unmet, *unmet_settings(plan, TOLD, "vLLM")),
    )


def _weights(plan: Plan, options: Options, weights: Weights) -> None:
    if weights.dtype:
        options.add("--dtype", weights.dtype)
    elif release_of(options.version) < FALLS_BACK_SINCE and _runs_in_float16(plan):
        options.add("--dtype", "half")
    if plan.scenario.plain_awq:
        plain_awq_option(plan, options)
    if plan.scenario.moe_runner_backend not in ("auto", "aiter"):
        options.add("--moe-backend", plan.scenario.moe_runner_backend)
    if weights.convert:
        value, since = ONLINE.get(weights.convert, ("", ""))
        now = release_of(options.version)
        gone = value == "bitsandbytes" and now >= BITSANDBYTES_UNTIL
        if value and now >= first_of(since) and not gone:
            options.add("--quantization", value)
            options.notes.append(f"vLLM quantises {weights.id} while it loads: the catalog knows no such checkpoint.")
        else:
            options.unmet.append(missing_checkpoint(weights))
    kind = plan.scenario.kv_cache_dtype
    if kind != "auto":
        name = KV_TYPES.get(kind, kind)
        if options.takes("--kv-cache-dtype", name):
            options.add("--kv-cache-dtype", name)
        else:
            options.unmet.append(f"KV cache = {kind}: vLLM has no cache of this type.")


def _runs_in_float16(plan: Plan) -> bool:
    """Whether the plan counts on float16 for a bf16 checkpoint, since the GPU has no bf16."""
    scenario = plan.scenario
    running = running_scheme(scenario.model_shape, plan.engine, plan.gpu, scenario.weight_dtype)
    return running != resolve_scheme(scenario.model_shape, scenario.weight_dtype).name


def _parallelism(plan: Plan, options: Options) -> None:
    scenario = plan.scenario
    for flag, size in (
        ("--tensor-parallel-size", scenario.tensor_parallel_size),
        ("--pipeline-parallel-size", scenario.pipeline_parallel_size),
        ("--data-parallel-size", scenario.attention_data_parallel_size),
        ("--decode-context-parallel-size", scenario.decode_context_parallel_size),
    ):
        if size > 1:
            options.add(flag, size)
    if scenario.expert_parallel:
        options.add("--enable-expert-parallel")


def _limits(plan: Plan, options: Options) -> None:
    scenario = plan.scenario
    for flags, value in (
        ("--gpu-memory-utilization", scenario.gpu_memory_utilization),
        ("--max-num-seqs", scenario.max_num_seqs),
        ("--max-num-batched-tokens", scenario.max_num_batched_tokens),
        ("--block-size", scenario.block_size),
        (("--max-cudagraph-capture-size", "--cuda-graph-sizes"), scenario.max_cudagraph_capture_size),
    ):
        if value is not None:
            options.add(flags, value)
    if scenario.long_prefill_token_threshold:
        options.add("--long-prefill-token-threshold", scenario.long_prefill_token_threshold)
    if scenario.stream_interval_tokens > 1:
        options.add("--stream-interval", scenario.stream_interval_tokens)


def _switches(plan: Plan, options: Options) -> None:
    """Switches whose planned position is not the release's own."""
    usual = get_engine("vllm", plan.engine.version)
    scenario = plan.scenario
    for flag, planned, default in (
        ("enable-chunked-prefill", plan.engine.enable_chunked_prefill, usual.enable_chunked_prefill),
        ("enable-prefix-caching", plan.engine.enable_prefix_caching, usual.enable_prefix_caching),
        ("async-scheduling", plan.engine.async_scheduling, usual.async_scheduling),
    ):
        if planned != default:
            options.add(f"--{flag}" if planned else f"--no-{flag}")
    if scenario.enforce_eager:
        options.add("--enforce-eager")
    if scenario.state_prefixes != "auto":
        options.add("--mamba-cache-mode", "align" if scenario.state_prefixes == "on" else "none")
    options.unmet += missing_frontend(plan, "dynamo.vllm")
    if scenario.offline:
        options.notes.append("The plan calls vLLM in the process (its LLM class); this command puts a server in front.")


def _memory(plan: Plan, options: Options) -> None:
    scenario = plan.scenario
    if scenario.state_dtype != "auto":
        options.add("--mamba-ssm-cache-dtype", scenario.state_dtype)
    if scenario.kv_offload_gib:
        options.add("--kv-offloading-size", scenario.kv_offload_gib)
    limits: dict[str, int] = {}
    if scenario.media == "none" and options.has("--language-model-only"):
        options.add("--language-model-only")
    elif scenario.media == "none":
        limits = {"image": 0, "video": 0}
    elif scenario.media == "images":
        limits = {"video": 0}
    if scenario.images_per_prompt is not None and scenario.media != "none":
        limits["image"] = scenario.images_per_prompt
    if scenario.encoder_data_parallel and scenario.media != "none":
        options.add("--mm-encoder-tp-mode", "data")
    if limits:
        old = release_of(options.version) < JSON_LIMITS_SINCE
        text = ",".join(f"{kind}={most}" for kind, most in limits.items()) if old else json.dumps(limits)
        options.add("--limit-mm-per-prompt", text)


def _speculation(plan: Plan, options: Options) -> None:
    scenario, tokens = plan.scenario, plan.scenario.num_speculative_tokens
    if not tokens:
        return
    if not options.has("--speculative-config"):
        if not scenario.draft_model:
            options.unmet.append(f"Speculative tokens = {tokens}: vLLM {options.version} needs a draft model for it.")
            return
        options.add("--speculative-model", scenario.draft_model)
        options.add("--num-speculative-tokens", tokens)
        return
    drafter: dict[str, object] = {"method": "ngram", "prompt_lookup_max": 4}
    if scenario.draft_model:
        draft = scenario.draft_shape
        method = "eagle3" if draft is not None and draft.draft_vocab_size else "draft_model"
        drafter = {"method": method, "model": scenario.draft_model}
    elif plan.model.mtp_parameters:
        drafter = {"method": "mtp"}
    options.add("--speculative-config", json.dumps({**drafter, "num_speculative_tokens": tokens}))


def _adapters(plan: Plan, options: Options) -> None:
    scenario = plan.scenario
    if not scenario.num_lora_adapters:
        return
    options.add("--enable-lora")
    if scenario.max_loras is not None:
        options.add("--max-loras", scenario.max_loras)
    rank = next((size for size in LORA_RANKS if size >= scenario.max_lora_rank), None)
    if rank is None:
        options.unmet.append(f"LoRA rank = {scenario.max_lora_rank}: vLLM takes at most {LORA_RANKS[-1]}.")
    elif rank != LORA_RANKS[2]:
        options.add("--max-lora-rank", rank)
    options.notes.append(
        f"Add --lora-modules NAME=PATH … for the {scenario.num_lora_adapters:,} adapters that clients choose from."
    )


def _environment(plan: Plan) -> tuple[tuple[str, str], ...]:
    scenario = plan.scenario
    found = []
    if scenario.engine_core != "auto":
        found.append(("VLLM_USE_V1", "1" if scenario.engine_core == "v1" else "0"))
    if scenario.latent_cache == "off":
        found.append(("VLLM_MLA_DISABLE", "1"))
    if scenario.moe_runner_backend == "aiter":
        found.append(("VLLM_ROCM_USE_AITER", "1"))
    return tuple(found)


def _nodes(plan: Plan, options: Options) -> tuple[tuple[tuple[str, str | None], ...], ...]:
    """Flags of each node where a replica needs more GPUs than one node has."""
    parallel, per_node = plan.scenario.parallelism, plan.gpu.gpus_per_node
    nodes = math.ceil(parallel.gpus_per_replica / per_node)
    if nodes == 1:
        return ()
    ranks = parallel.attention_data_parallel_size
    if ranks > 1:
        one = parallel.tensor_parallel_size * parallel.pipeline_parallel_size
        here = max(1, per_node // one)
        if one > per_node:
            options.unmet.append("Each attention group spans several nodes: start it with Ray (vLLM, multi-node).")
            return ()
        if not options.has("--data-parallel-size-local"):
            options.unmet.append(
                f"Attention data parallel over several nodes: vLLM {options.version} has no flag for it."
            )
            return ()
        return tuple(_data_parallel_node(node, here, ranks) for node in range(math.ceil(ranks / here)))
    if not all(options.has(flag) for flag in MASTER_PORT_NODES):
        options.notes.append("This release spans nodes with Ray: start a Ray cluster over the nodes first.")
        options.add("--distributed-executor-backend", "ray")
        return ()
    return tuple(
        (
            ("--nnodes", str(nodes)),
            ("--node-rank", str(node)),
            ("--master-addr", HEAD),
            *((("--headless", None),) if node else ()),
        )
        for node in range(nodes)
    )


def _data_parallel_node(node: int, here: int, ranks: int) -> tuple[tuple[str, str | None], ...]:
    local = min(here, ranks - node * here)
    own: tuple[tuple[str, str | None], ...] = (
        ("--data-parallel-size-local", str(local)),
        ("--data-parallel-address", HEAD),
    )
    return own if not node else (*own, ("--data-parallel-start-rank", str(node * here)), ("--headless", None))
