"""The `trtllm-serve` command of a plan, with the YAML file that carries what it has no flag for."""

from __future__ import annotations

import math
from typing import Any

import yaml

from planner.answer import Plan
from planner.catalog import get_engine
from planner.deploy.launch import Launch, Options
from planner.deploy.settings import counted_on, missing_frontend, release, unmet_settings
from planner.deploy.weights import missing_checkpoint, started_options
from planner.inputs import KvReservation
from planner.units import GIB

COMMAND = "trtllm-serve"
EXTRA_FILE = "trtllm.yaml"
KV_TYPES = {"fp8": "fp8", "fp8_e4m3": "fp8", "nvfp4": "nvfp4", "bf16": "auto", "fp16": "auto"}
TOLD = (
    *("tensor_parallel_size", "pipeline_parallel_size", "attention_data_parallel_size", "expert_parallel"),
    *("kv_cache_dtype", "gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens", "enable_prefix_caching"),
    *("chunked_prefill", "async_scheduling", "block_size", "state_dtype", "kv_offload_gib", "max_total_tokens"),
    *(
        "num_speculative_tokens",
        "num_lora_adapters",
        "max_loras",
        "max_lora_rank",
        "enforce_eager",
        "max_cudagraph_capture_size",
    ),
    *("stream_interval_tokens", "moe_runner_backend", "offline", "behind_dynamo"),
)
MOE_BACKENDS = {"triton": "TRITON", "flashinfer_trtllm": "TRTLLM"}


def trtllm_launch(plan: Plan) -> Launch:
    """How to start one replica of a plan with TensorRT-LLM.

    Parameters
    ----------
    plan : Plan
        Its scenario says what the user set; everything else stays at the engine's defaults.

    Returns
    -------
    Launch
        The command, and trtllm.yaml where it needs one. Source: tensorrt_llm/commands/serve.py and llm_args.py.
    """
    scenario, version = plan.scenario, release(plan)
    options, weights = started_options(plan, COMMAND, "TensorRT-LLM")
    if weights.convert:
        options.unmet.append(missing_checkpoint(weights))
    options.add("--max_seq_len", scenario.max_model_len)
    _parallelism(plan, options)
    if scenario.max_num_seqs is not None:
        options.add("--max_batch_size", scenario.max_num_seqs)
    else:
        options.add("--max_batch_size", plan.memory.max_num_seqs)  # its own default of 2,048 is not the planned one
    if scenario.max_num_batched_tokens is not None:
        options.add("--max_num_tokens", scenario.max_num_batched_tokens)
    extra = _extra(plan, options)
    if extra:
        options.add("--extra_llm_api_options", EXTRA_FILE)
    if scenario.gpu_memory_utilization is not None and "kv_cache_config" not in extra:
        options.add("--kv_cache_free_gpu_memory_fraction", scenario.gpu_memory_utilization)
    given, memory = plan.scenario, plan.memory
    options.notes += counted_on(
        [
            (
                "--kv_cache_free_gpu_memory_fraction",
                given.gpu_memory_utilization,
                memory.gpu_memory_utilization,
            ),
            ("--max_num_tokens", given.max_num_batched_tokens, memory.max_num_batched_tokens),
        ]
    )
    if math.ceil(scenario.parallelism.gpus_per_replica / plan.gpu.gpus_per_node) > 1:
        options.unmet.append("A replica spans several nodes: start it under Slurm or mpirun with trtllm-llmapi-launch.")
    return Launch(
        engine="trtllm",
        title="TensorRT-LLM",
        version=version,
        program=("trtllm-serve", weights.id),
        options=tuple(options.chosen),
        files=((EXTRA_FILE, yaml.safe_dump(extra, sort_keys=False)),) if extra else (),
        model=weights.id,
        port=8000,
        health_path="/health",
        in_container=(("--host", "0.0.0.0"),),
        notes=tuple(options.notes),
        unmet=(*options.unmet, *unmet_settings(plan, TOLD, "TensorRT-LLM")),
    )


def _parallelism(plan: Plan, options: Options) -> None:
    scenario = plan.scenario
    attention = scenario.attention_data_parallel_size
    ranks = scenario.tensor_parallel_size * attention
    if ranks > 1:
        options.add("--tp_size", ranks)
    if scenario.pipeline_parallel_size > 1:
        options.add("--pp_size", scenario.pipeline_parallel_size)
    if scenario.expert_parallel:
        options.add("--ep_size", ranks)
    if attention > 1 and scenario.tensor_parallel_size > 1:
        options.unmet.append(
            f"Attention data parallel = {attention} with tensor parallel {scenario.tensor_parallel_size}: TensorRT-LLM "
            "runs attention data parallel over all ranks or over none."
        )


def _extra(plan: Plan, options: Options) -> dict[str, Any]:
    """The YAML file: only what the plan sets otherwise than the engine."""
    scenario, usual = plan.scenario, get_engine("tensorrt-llm", plan.engine.version)
    extra: dict[str, Any] = {}
    if scenario.attention_data_parallel_size > 1:
        extra["enable_attention_dp"] = True
    cache = _cache(plan, options)
    if cache:
        if scenario.gpu_memory_utilization is not None:
            cache["free_gpu_memory_fraction"] = scenario.gpu_memory_utilization
        extra["kv_cache_config"] = cache
    if plan.engine.enable_chunked_prefill != usual.enable_chunked_prefill:
        extra["enable_chunked_prefill"] = plan.engine.enable_chunked_prefill
    if not plan.engine.async_scheduling and usual.async_scheduling:
        extra["disable_overlap_scheduler"] = True
    if scenario.enforce_eager:
        extra["cuda_graph_config"] = None
    elif scenario.max_cudagraph_capture_size is not None:
        extra["cuda_graph_config"] = {"max_batch_size": scenario.max_cudagraph_capture_size}
    if scenario.stream_interval_tokens > 1:
        extra["stream_interval"] = scenario.stream_interval_tokens
    if scenario.moe_runner_backend in MOE_BACKENDS:
        extra["moe_config"] = {"backend": MOE_BACKENDS[scenario.moe_runner_backend]}
    elif scenario.moe_runner_backend != "auto":
        options.unmet.append(f"Kernels of the experts = {scenario.moe_runner_backend}: TensorRT-LLM has none of them.")
    if plan.engine.kv_reservation is not KvReservation.OUTPUT_LIMIT:
        extra["scheduler_config"] = {"capacity_scheduler_policy": "MAX_UTILIZATION"}
    if scenario.num_speculative_tokens:
        extra["speculative_config"] = _drafter(plan)
    if scenario.num_lora_adapters:
        extra["lora_config"] = {"max_lora_rank": scenario.max_lora_rank, "max_loras": plan.engine.max_loras}
        options.notes.append("Requests name their adapter (lora_request); TensorRT-LLM loads it on first use.")
    options.unmet += missing_frontend(plan, "dynamo.trtllm")
    if scenario.offline:
        options.notes.append("The plan calls TensorRT-LLM in the process (LLM API); this command starts a server.")
    return extra


def _cache(plan: Plan, options: Options) -> dict[str, Any]:
    scenario = plan.scenario
    cache: dict[str, Any] = {}
    kind = scenario.kv_cache_dtype
    if kind in KV_TYPES and KV_TYPES[kind] != "auto":
        cache["dtype"] = KV_TYPES[kind]
    elif kind != "auto" and kind not in KV_TYPES:
        options.unmet.append(f"KV cache = {kind}: TensorRT-LLM has no cache of this type.")
    if not scenario.enable_prefix_caching:
        cache["enable_block_reuse"] = False
    for key, value in (
        ("max_tokens", scenario.max_total_tokens),
        ("tokens_per_block", scenario.block_size),
        ("host_cache_size", round(scenario.kv_offload_gib * GIB) or None),
        ("mamba_ssm_cache_dtype", None if scenario.state_dtype == "auto" else scenario.state_dtype),
    ):
        if value is not None:
            cache[key] = value
    return cache


def _drafter(plan: Plan) -> dict[str, Any]:
    scenario = plan.scenario
    draft = scenario.draft_shape
    if draft is not None:
        return {
            "decoding_type": "Eagle" if draft.draft_vocab_size else "DraftTarget",
            "max_draft_len": scenario.num_speculative_tokens,
            "speculative_model_dir": scenario.draft_model,
        }
    if plan.model.mtp_parameters:
        return {"decoding_type": "MTP", "num_nextn_predict_layers": scenario.num_speculative_tokens}
    return {"decoding_type": "NGram", "max_draft_len": scenario.num_speculative_tokens}
