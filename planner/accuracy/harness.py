"""What the tools that run benchmarks work out for themselves before they start an engine."""

from __future__ import annotations

import math

from planner.model import MixerKind, kv_bits
from planner.scenario import Scenario

# what trtllm-bench assumes when it sizes the batch
TUNED_MEMORY_SHARE = 0.95
TUNED_BATCH_LIMIT = 4096
TUNED_TOKENS_LIMIT = 32768
TUNED_WEIGHT_BYTES = {"fp8": 1.0, "fp8_block": 1.0, "nvfp4": 0.5}


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


def trtllm_bench_batch(scenario: Scenario) -> tuple[int, int]:
    """Batch size and token budget that trtllm-bench derives from model, GPU and mean lengths.

    As many requests as the memory beside the weights holds, at most 4,096, and the tokens that they bring
    per step while prompts keep pace with answers; both rounded up to the steps that the tool uses.

    Parameters
    ----------
    scenario : Scenario
        The run.

    Returns
    -------
    max_num_seqs, max_num_batched_tokens : int, int
        Source: TensorRT-LLM `tensorrt_llm/bench/build/tuning.py`.
    """
    model, gpu, parallelism = scenario.model_shape, scenario.gpu_spec, scenario.parallelism
    width = parallelism.tensor_parallel_size * parallelism.attention_data_parallel_size
    stages = parallelism.pipeline_parallel_size
    per_token = 0.0
    for layer, count in model.layer_counts():
        mixer = layer.mixer
        if mixer.kind is MixerKind.MLA:  # published rates need a larger batch than the tool, which knows no latents
            per_token += count * (mixer.kv_lora_rank + mixer.qk_rope_head_dim)
        elif mixer.num_kv_heads:
            per_token += count * max(width, mixer.num_kv_heads) * (mixer.head_dim + mixer.value_head_dim)
    per_token *= kv_bits(scenario.kv_cache_dtype, scenario.weight_dtype) / 8
    weights = model.num_parameters * TUNED_WEIGHT_BYTES.get(scenario.weight_dtype, 2.0)
    room = TUNED_MEMORY_SHARE * (gpu.memory_bytes * width * stages - weights)
    prompt, output = scenario.prompt_mean_tokens, scenario.output_mean_tokens
    held = room / max(1.0, per_token * (prompt + output))
    batch = min(max(held, 1.0), TUNED_BATCH_LIMIT) / stages
    tokens = min(batch * (1 + prompt / output), TUNED_TOKENS_LIMIT)
    step = 32 if batch < 256 else 128 if batch < 1024 else 256
    quantum = 256 if tokens < 4096 else 512 if tokens < 8192 else 1024
    # of each micro-batch in flight; the simulated scheduler counts all of them
    batch = max(64, step * math.ceil(batch / step)) * stages
    return batch, max(2048, quantum * math.ceil(tokens / quantum))
