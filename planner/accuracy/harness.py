"""What benchmarks set without saying so in their rows: settings of their scripts, and what their tools work out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from planner.accuracy.expressions import parsed, value_of
from planner.accuracy.row_reader import number_in, typed
from planner.model import MixerKind, kv_bits
from planner.scenario import Scenario
from planner.tables import read_table

HARNESS = "accuracy/data/harness_settings.csv"
#: what scripts set besides fields of the Scenario, and its kind
HARNESS_FACTS = {
    "requests_per_user": "count",
    "tuned_batch": "flag",
    "drafting": "flag",
    "attention_dp": "text",
    "gpus_used": "count",  # where the published width is not that of the run
}
#: columns of a row that choose lines of the table, by their names there
_CHOSEN_BY = {"source": "source", "model": "model", "gpu": "gpu", "weights": "weight_dtype"}
#: what formulas of scripts may refer to (planner/accuracy/expressions.py)
NAMES = frozenset({"isl", "osl", "concurrency", "tp", "ep"})

# what trtllm-bench assumes when it sizes the batch
TUNED_MEMORY_SHARE = 0.95
TUNED_BATCH_LIMIT = 4096
TUNED_TOKENS_LIMIT = 32768
TUNED_WEIGHT_BYTES = {"fp8": 1.0, "fp8_block": 1.0, "nvfp4": 0.5}


def harness_settings(row: Mapping[str, str], family: str, isl: int, osl: int, users: int) -> dict[str, Any]:
    """Collect what the benchmark's own scripts set for a row.

    Parameters
    ----------
    row : mapping
        Columns of a serving benchmark row, blanks as "".
    family : str
        Engine family.
    isl, osl, users : int
        Lengths [tokens] and requests in flight, on which scripts make settings depend; 0 = not stated.

    Returns
    -------
    dict
        Field of the Scenario, or fact, to value.
    """
    out: dict[str, Any] = {}
    split = {name: int(number_in(str(row.get(name) or "")) or 1) for name in ("tp", "ep")}
    run = {"isl": isl, "osl": osl, "concurrency": users} | split
    for line in read_table(HARNESS):
        if not _is_meant(line, row, family):
            continue
        for setting in line["settings"].split("; "):
            name, _, text = setting.partition("=")
            formula = parsed(text, NAMES)
            out[name] = typed(name, text if formula is None else str(value_of(formula, run)), HARNESS_FACTS)
    return {name: value for name, value in out.items() if value or isinstance(value, bool)}


def _is_meant(line: Mapping[str, str], row: Mapping[str, str], family: str) -> bool:
    if line["engine"] not in ("", family) or line["version"] not in ("", row.get("engine_version", "")):
        return False
    if line["tp"] and line["tp"] != row.get("tp", "").removesuffix(".0"):
        return False
    if line["since"] > row.get("date", ""):
        return False
    return all(_names(line[key], row.get(column, "")) for key, column in _CHOSEN_BY.items())


def _names(part: str, published: str) -> bool:
    """Whether a published name contains one of the parts ("a|b"), or begins with it (`^`)."""
    name = published.lower()
    parts = part.lower().split("|")
    return any(name.startswith(each[1:]) if each.startswith("^") else each in name for each in parts)


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
