"""Deployments of published serving runs: engine, memory and step times that a row's settings lead to."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable
from typing import Any

from planner.accuracy.names import checkpoint_shape
from planner.accuracy.serving_rows import RowSkipped, ServingCase
from planner.catalog import get_engine, get_gpu
from planner.errors import PlannerError
from planner.inputs import EngineSettings, Limits, Parallelism, StepOrder
from planner.memory import MemoryPlan, plan_memory
from planner.model import MixerKind, kv_bits
from planner.step_time import RankShare, StepTimeTable, step_time_table

MOST_MEMORY = 0.95  # the largest share of device memory that engines' guides set
# what trtllm-bench assumes when it sizes the batch
TUNED_MEMORY_SHARE = 0.95
TUNED_BATCH_LIMIT = 4096
TUNED_TOKENS_LIMIT = 32768
TUNED_WEIGHT_BYTES = {"fp8": 1.0, "fp8_block": 1.0, "nvfp4": 0.5}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One replica, sized and timed."""

    engine: EngineSettings
    memory: MemoryPlan
    limits: Limits
    table: StepTimeTable


def deployment_of(case: ServingCase, cache: dict[Hashable, Deployment | str]) -> Deployment:
    """Size and time the deployment of a run.

    Parameters
    ----------
    case : ServingCase
        The run.
    cache : dict
        Deployments of earlier runs, shared between calls; a text says why one does not start.

    Returns
    -------
    Deployment

    Raises
    ------
    RowSkipped
        When it does not start by the memory model.
    """
    high = 2.5 if case.prompt_low < 0 else max(case.prompt_high, case.output_high)
    longest = math.ceil((case.prompt_tokens + case.output_tokens) * high) + 16
    max_model_len = case.max_model_len or longest
    engine, parallelism = engine_of(case), _parallelism_of(case)
    key = (
        engine,  # with the version, the limits and the drafting of the row
        parallelism,
        case.model,
        case.gpu,
        case.weight_dtype,
        case.kv_cache_dtype,
        case.memory_share_stated,
        max_model_len,
        (case.prompt_tokens, case.output_tokens) if case.tuned_batch else (),
        (case.prompt_tokens, case.concurrency) if case.arrival == "static" else (),
    )
    if key not in cache:
        try:
            cache[key] = _deploy(case, engine, parallelism, max_model_len)
        except (PlannerError, RowSkipped) as reason:
            cache[key] = str(reason)
    found = cache[key]
    if isinstance(found, str):
        raise RowSkipped(found)
    return found


def acceptance_of(drafts: int, tokens_per_step: float) -> float:
    """Chance that a drafted token is accepted, from the mean tokens that a sequence gains per step.

    Parameters
    ----------
    drafts : int
        Tokens drafted per step.
    tokens_per_step : float
        1 to drafts + 1.

    Returns
    -------
    float
        a that solves 1 + a + … + a^drafts = tokens_per_step, by bisection.
    """
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        gained = sum(middle**power for power in range(drafts + 1))
        low, high = (middle, high) if gained < tokens_per_step else (low, middle)
    return (low + high) / 2


def engine_of(case: ServingCase) -> EngineSettings:
    """Choose the engine preset of a case: its family at the published version, with what the row sets."""
    engine = get_engine({"llamacpp": "llama.cpp", "generic": "vllm"}.get(case.engine, case.engine))
    changes: dict[str, Any] = {
        "version": ".".join(map(str, case.version)),
        "enable_prefix_caching": False,
        "moe_runner_backend": case.moe_runner_backend,
    }
    for name in ("max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization"):
        if getattr(case, name) is not None:
            changes[name] = getattr(case, name)
    if case.num_speculative_tokens:
        changes["num_speculative_tokens"] = case.num_speculative_tokens
        changes["speculative_acceptance"] = acceptance_of(case.num_speculative_tokens, case.tokens_per_step)
    if case.engine == "vllm":
        # asynchronous scheduling became the default with 0.14; before it the host's work adds to each step
        changes["async_scheduling"] = not case.version or case.version >= (0, 14)
        # CUDA graphs came with 0.3 (January 2024)
        changes["cuda_graphs"] = not 0 < case.year < 2024 and (not case.version or case.version >= (0, 3))
        if case.version and case.version < (0, 8):
            # V0, the default until 0.8: whole prompts first, decoding waits
            changes |= {"step_order": StepOrder.PREFILL_FIRST, "enable_chunked_prefill": False}
    return dataclasses.replace(engine, **changes)


def tuned_batch(case: ServingCase) -> tuple[int, int]:
    """Batch size and token budget that trtllm-bench derives from model, GPU and mean lengths.

    As many requests as the memory beside the weights holds, at most 4,096, and the tokens that they bring
    per step while prompts keep pace with answers; both rounded up to the steps that the tool uses.

    Parameters
    ----------
    case : ServingCase
        The run.

    Returns
    -------
    max_num_seqs, max_num_batched_tokens : int, int
        Source: TensorRT-LLM `tensorrt_llm/bench/build/tuning.py`.
    """
    model, gpu = checkpoint_shape(case.model, case.weight_dtype), get_gpu(case.gpu)
    width = case.tensor_parallel_size * case.attention_data_parallel_size
    ranks = width * case.pipeline_parallel_size
    per_token = 0.0
    for layer, count in model.layer_counts():
        mixer = layer.mixer
        if mixer.kind is MixerKind.MLA:  # published rates need a larger batch than the tool, which knows no latents
            per_token += count * (mixer.kv_lora_rank + mixer.qk_rope_head_dim)
        elif mixer.num_kv_heads:
            per_token += count * max(width, mixer.num_kv_heads) * (mixer.head_dim + mixer.value_head_dim)
    per_token *= kv_bits(case.kv_cache_dtype, case.weight_dtype) / 8
    weights = model.num_parameters * TUNED_WEIGHT_BYTES.get(case.weight_dtype, 2.0)
    room = TUNED_MEMORY_SHARE * (gpu.memory_bytes * ranks - weights)
    held = room / max(1.0, per_token * (case.prompt_tokens + case.output_tokens))
    batch = min(max(held, 1.0), TUNED_BATCH_LIMIT) / case.pipeline_parallel_size
    tokens = min(batch * (1 + case.prompt_tokens / case.output_tokens), TUNED_TOKENS_LIMIT)
    step = 32 if batch < 256 else 128 if batch < 1024 else 256
    quantum = 256 if tokens < 4096 else 512 if tokens < 8192 else 1024
    # of each micro-batch in flight; the simulated scheduler counts all of them
    batch = max(64, step * math.ceil(batch / step)) * case.pipeline_parallel_size
    return batch, max(2048, quantum * math.ceil(tokens / quantum))


def _parallelism_of(case: ServingCase) -> Parallelism:
    return Parallelism(
        tensor_parallel_size=case.tensor_parallel_size,
        pipeline_parallel_size=case.pipeline_parallel_size,
        expert_parallel=case.expert_parallel,
        attention_data_parallel_size=case.attention_data_parallel_size,
    )


def _deploy(case: ServingCase, engine: EngineSettings, parallelism: Parallelism, max_model_len: int) -> Deployment:
    model, gpu = checkpoint_shape(case.model, case.weight_dtype), get_gpu(case.gpu)
    if case.tuned_batch:
        batch, budget = tuned_batch(case)
        engine = dataclasses.replace(
            engine,
            max_num_seqs=case.max_num_seqs or batch,
            max_num_batched_tokens=case.max_num_batched_tokens or budget,
        )
    memory = _sized(case, engine, parallelism, max_model_len)
    limits = _limits_of(case, memory, max_model_len)
    engine = dataclasses.replace(
        engine,
        max_num_seqs=limits.max_num_seqs,
        max_num_batched_tokens=limits.max_num_batched_tokens,
        gpu_memory_utilization=memory.gpu_memory_utilization,
        block_size=memory.block_size,
    )
    drafts = case.num_speculative_tokens
    replica = RankShare(
        model=model,
        gpu=gpu,
        engine=engine,
        parallelism=parallelism,
        weight_dtype=case.weight_dtype,
        kv_cache_dtype=case.kv_cache_dtype,
    )
    table = step_time_table(replica, max(limits.max_num_batched_tokens, limits.max_num_seqs * (1 + drafts)))
    return Deployment(engine=engine, memory=memory, limits=limits, table=table)


def _sized(case: ServingCase, engine: EngineSettings, parallelism: Parallelism, max_model_len: int) -> MemoryPlan:
    """Memory of a run that is known to have started: what its row leaves open is read so that it does."""
    memory = _plan(case, engine, parallelism, max_model_len)
    if not memory.starts and not case.expert_parallel and memory.kv_pool_bytes > 0:
        # Widths that a scheme's blocks do not divide run with whole experts per rank.
        other = _plan(case, engine, dataclasses.replace(parallelism, expert_parallel=True), max_model_len)
        memory = other if other.starts else memory
    for share in (None, MOST_MEMORY):
        if memory.starts or case.memory_share_stated:
            break
        # The harness's usual share of memory holds no weights here, and yet it ran: it had more.
        roomier = dataclasses.replace(engine, gpu_memory_utilization=share)
        other = _plan(case, roomier, parallelism, max_model_len)
        memory = other if other.starts else memory
    return memory


def _limits_of(case: ServingCase, memory: MemoryPlan, max_model_len: int) -> Limits:
    """Limits of the scheduler, over all attention ranks."""
    limits = memory.limits()
    if not memory.starts:
        # It was measured, so it ran: our memory model is a little too strict here. Give it the room of a few
        # requests, which errs on the slow side.
        if memory.weights_bytes > get_gpu(case.gpu).memory_bytes:
            raise RowSkipped(f"by our sizing the engine does not start: {memory.refusal}")
        blocks = max(memory.num_kv_blocks, 4 * math.ceil(max_model_len / memory.block_size) + 1)
        limits = dataclasses.replace(limits, num_kv_blocks=blocks)
    ranks = case.attention_data_parallel_size
    if ranks > 1:
        # Sizing speaks of one attention rank; the simulated scheduler deals requests to all of them evenly.
        limits = dataclasses.replace(
            limits,
            max_num_seqs=limits.max_num_seqs * ranks,
            max_num_batched_tokens=limits.max_num_batched_tokens * ranks,
            num_kv_blocks=limits.num_kv_blocks * ranks,
        )
    if case.arrival == "static":
        # A static engine pads to its batch: prompts of the whole batch go through at once.
        limits = dataclasses.replace(
            limits,
            max_num_seqs=max(limits.max_num_seqs, case.concurrency),
            max_num_batched_tokens=max(limits.max_num_batched_tokens, math.ceil(case.prompt_tokens * case.concurrency)),
            num_kv_blocks=max(
                limits.num_kv_blocks, case.concurrency * (math.ceil(max_model_len / limits.block_size) + 1)
            ),
        )
    return limits


def _plan(case: ServingCase, engine: EngineSettings, parallelism: Parallelism, max_model_len: int) -> MemoryPlan:
    return plan_memory(
        checkpoint_shape(case.model, case.weight_dtype),
        get_gpu(case.gpu),
        engine,
        parallelism,
        max_model_len=max_model_len,
        weight_dtype=case.weight_dtype,
        kv_cache_dtype=case.kv_cache_dtype,
    )
