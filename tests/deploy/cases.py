"""Plans that several tests of the deploy stage ask for, and readers that know nothing of its writers."""

import csv
import random
import re
from functools import cache
from pathlib import Path

from planner.answer.outcome import Plan
from planner.answer.planning import plan, size
from planner.catalog.engines import engine_names, get_engine
from planner.catalog.models import model_names
from planner.errors import PlannerError
from planner.scenario.scenario import Scenario

SMALL = Scenario(num_requests=60)
VERSIONS = {
    "vllm": ("", "0.6.6", "0.7.3", "0.8.5", "0.9.2", "0.10.2", "0.11.0", "0.12.0", "0.14", "0.20.0", "0.33.0"),
    "sglang": ("", "0.4.6", "0.4.10", "0.5.4", "0.5.13", "0.5.14", "0.5.20", "0.5.23"),
}


@cache
def planned(**changes: object) -> Plan:
    """Plan the default scenario with these changes."""
    return plan(SMALL.replace(**changes))


@cache
def sized(**changes: object) -> Plan:
    """Size the default scenario with these changes, without a simulation."""
    return size(SMALL.replace(**changes))


def served() -> list[str]:
    """Engine presets with a server."""
    return [name for name in engine_names() if get_engine(name).family != "generic"]


def random_plans(count: int, seed: int, engines: list[str] | None = None) -> list[Plan]:
    """Sized plans of random scenarios; those that the inputs refuse are drawn again."""
    draw, found = random.Random(seed), []
    while len(found) < count:
        engine = draw.choice(engines or served())
        version = draw.choice(VERSIONS.get(get_engine(engine).family, ("",)))
        changes = {"engine": engine, "engine_version": version} | random_settings(draw)
        try:
            found.append(size(SMALL.replace(**changes), explain=False))
        except PlannerError:
            continue
    return found


def random_settings(draw: random.Random) -> dict[str, object]:
    def maybe(values: list[object], default: object) -> object:
        return draw.choice(values) if draw.random() < 0.3 else default

    return {
        "model": draw.choice(model_names()[:120]),
        "gpu": draw.choice(["H100 SXM", "B200", "A100 SXM 80GB", "RTX 4090", "MI300X", "L40S"]),
        "weight_dtype": draw.choice(["auto", "auto", "bf16", "fp8", "fp8_block", "nvfp4", "awq_int4", "gguf_q4_k_m"]),
        "kv_cache_dtype": maybe(["fp8", "fp8_e5m2", "bf16", "q8_0", "int8", "nvfp4"], "auto"),
        "max_model_len": draw.choice([2048, 4096, 8000]),
        "tensor_parallel_size": draw.choice([1, 1, 2, 4, 8]),
        "pipeline_parallel_size": maybe([2, 4], 1),
        "attention_data_parallel_size": maybe([1, 8, 16], 1),
        "expert_parallel": maybe([True], False),
        "decode_context_parallel_size": maybe([2], 1),
        "gpu_memory_utilization": maybe([0.8, 0.95], None),
        "max_num_seqs": maybe([16, 200], None),
        "max_num_batched_tokens": maybe([4096, 16384], None),
        "enable_prefix_caching": maybe([False], True),
        "chunked_prefill": maybe(["on", "off"], "auto"),
        "async_scheduling": maybe(["off"], "auto"),
        "block_size": maybe([32, 64], None),
        "long_prefill_token_threshold": maybe([1024], 0),
        "kv_offload_gib": maybe([12.5], 0.0),
        "num_speculative_tokens": maybe([1, 3], 0),
        "num_lora_adapters": maybe([4], 0),
        "max_loras": maybe([4], None),
        "max_lora_rank": maybe([24, 64], 16),
        "enforce_eager": maybe([True], False),
        "encoder_data_parallel": maybe([True], False),
        "plain_awq": maybe([True], False),
        "behind_dynamo": maybe([True], False),
        "max_cudagraph_capture_size": maybe([64], None),
        "state_dtype": maybe(["float32", "bfloat16"], "auto"),
        "media": maybe(["none", "images"], "auto"),
        "images_per_prompt": maybe([2], None),
        "state_prefixes": maybe(["on", "off"], "auto"),
        "stream_interval_tokens": maybe([4], 1),
        "receive_interval_steps": maybe([5], 1),
        "latent_cache": maybe(["off"], "auto"),
        "max_total_tokens": maybe([50_000], None),
        "max_state_slots": maybe([64], None),
        "mamba_full_memory_ratio": maybe([0.5], None),
        "moe_runner_backend": maybe(["triton"], "auto"),
        "kv_unified": maybe(["on", "off"], "auto"),
    }


@cache
def _fields() -> dict[str, dict[str, tuple[str, bool]]]:
    found: dict[str, dict[str, tuple[str, bool]]] = {}
    with (Path(__file__).parent / "manifest_fields.csv").open() as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            found.setdefault(row["object"], {})[row["field"]] = (row["type"], row["required"] == "yes")
    return found


def misfits(value: object, kind: str, place: str = "") -> list[str]:
    """Where a manifest differs from the published field names and types of an object."""
    if kind in ("object", "datetime"):
        return []
    if kind in ("str", "int", "bool", "float"):
        wanted = {"str": str, "int": int, "bool": bool, "float": float}[kind]
        right = isinstance(value, wanted) and not (kind == "int" and isinstance(value, bool))
        return [] if right else [f"{place}: {value!r} is no {kind}"]
    inner = re.fullmatch(r"list\[(.*)\]", kind)
    if inner:
        if not isinstance(value, list):
            return [f"{place}: no list"]
        return [error for index, item in enumerate(value) for error in misfits(item, inner[1], f"{place}[{index}]")]
    inner = re.fullmatch(r"dict\(str, (.*)\)", kind)
    if inner:
        if not isinstance(value, dict):
            return [f"{place}: no mapping"]
        return [error for key, item in value.items() for error in misfits(item, inner[1], f"{place}.{key}")]
    if kind not in _fields():
        return [f"{place}: no fields of {kind} are known"]
    if not isinstance(value, dict):
        return [f"{place}: no {kind}"]
    known = _fields()[kind]
    errors = [f"{place}: {kind} has no {key}" for key in value if key not in known]
    errors += [f"{place}: {kind} needs {key}" for key, (_, required) in known.items() if required and key not in value]
    for key, item in value.items():
        if key in known:
            errors += misfits(item, known[key][0], f"{place}.{key}")
    return errors
