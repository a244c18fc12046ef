"""A published start-up log as a `Scenario`: what its engine was told, in the fields that every user sets.

Only what went in is read (accuracy/data/memory_patterns.csv names the columns), never what the engine printed. What a
row leaves open stays open, so that the engine's own defaults apply.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.accuracy.memory_gpus import gpu_fields
from planner.accuracy.names import find_engine_preset, find_model, weight_dtype_of
from planner.accuracy.row_reader import number_in, read_fields
from planner.catalog import find_model_id, get_engine, get_model, version_at
from planner.errors import InvalidInput
from planner.memory import ollama_context_tokens
from planner.model import ModelShape
from planner.scenario import Scenario

SETTINGS = "accuracy/data/memory_patterns.csv"
#: engines that split a model over the GPUs that they are given by layers, not by matrices
BY_LAYERS = "llamacpp"
#: start-up logs come without traffic, and their predictions do not depend on any
NO_TRAFFIC: dict[str, Any] = {
    "num_requests": 1,
    "lengths": "constant",
    "prompt_mean_tokens": 1.0,
    "output_mean_tokens": 1.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCase:
    """One start-up: the scenario, and whether the row names its GPU; if not, the form's default GPU is used."""

    scenario: Scenario
    gpu_known: bool


def read_case(row: Mapping[str, str]) -> MemoryCase:
    """Read a row of a memory file.

    Parameters
    ----------
    row : mapping
        Columns of memory_cases.csv, blanks as "".

    Returns
    -------
    MemoryCase
        What to size.

    Raises
    ------
    InvalidInput
        When the row names no engine or model that the catalog has, or sets what no engine takes.
    """
    if not row.get("engine", "").strip():
        raise InvalidInput("engine", row.get("engine", ""), "an engine of the catalog")
    fields = {"engine": find_engine_preset(row["engine"])} | read_fields(row, SETTINGS)
    family = get_engine(fields["engine"]).family
    fields["model"] = _known("model", row.get("model", ""), find_model)
    model = get_model(fields["model"])
    gpu = gpu_fields(row)
    fields |= gpu | _split(row, fields, family, model)
    fields["weight_dtype"] = weight_dtype_of(row, model)
    fields.setdefault("engine_version", _version_by_date(row, family))
    if "draft_model" in fields:
        # by its id alone: EAGLE heads carry the name of the model that they draft for
        fields["draft_model"] = _known("draft_model", fields["draft_model"], find_model_id)
        fields.setdefault("num_speculative_tokens", 1)
    stated = fields.pop("max_model_len", None)
    made = Scenario(**NO_TRAFFIC | fields, max_model_len=stated or model.max_position_embeddings)
    if stated is None and made.engine == "ollama":
        made = made.replace(max_model_len=ollama_context_tokens(made.gpu_spec, made.max_model_len))
    return MemoryCase(scenario=made, gpu_known=bool(gpu))


def _known(field: str, name: str, find: Callable[[str], str | None]) -> str:
    key = find(name)
    if key is None:
        raise InvalidInput(field, name, "a model of the catalog")
    return key


def _split(row: Mapping[str, str], fields: Mapping[str, Any], family: str, model: ModelShape) -> dict[str, Any]:
    """How the GPUs of a row share the model where it says only how many there are.

    Side by side in one replica, as people run a model on several, and in stages of so many as divide its heads; whole
    layers on each in llama.cpp. Data-parallel attention divides the width that SGLang is told; copies of a model
    without experts are replicas.
    """
    devices = int(number_in(row.get("n_gpus", "")) or 1)
    width, stages = fields.get("tensor_parallel_size"), fields.get("pipeline_parallel_size", 1)
    data = fields.get("attention_data_parallel_size", 1)
    if width is None and family == BY_LAYERS:
        width, stages = 1, max(stages, devices)
    if width is None:
        width = max(1, devices // max(1, stages * data))
        if "pipeline_parallel_size" not in fields:
            widest = math.gcd(width, *(layer.mixer.num_heads for layer, _ in model.layer_counts()))
            width, stages = widest, stages * width // widest
    if "attention" in row.get("dp_ep", "").lower():
        width = max(1, width // max(1, data))
    split = {"tensor_parallel_size": width, "pipeline_parallel_size": stages}
    return split if model.is_moe or data == 1 else split | {"attention_data_parallel_size": 1, "num_replicas": data}


def _version_by_date(row: Mapping[str, str], family: str) -> str:
    """Newest release at the date that a row's version names, or at which it was posted; "" without one.

    NVIDIA's containers are numbered by year and month.
    """
    container = re.search(r"(?<![\d.])(2[4-9])\.(0[1-9]|1[0-2])\b", row.get("version", ""))
    text = f"20{container[1]}-{container[2]}-01" if container else f"{row.get('version', '')} {row.get('date', '')}"
    dated = re.search(r"20\d\d-\d\d(?:-\d\d)?", text)
    if dated is None:
        return ""
    return version_at(family, dated[0] if len(dated[0]) == 10 else f"{dated[0]}-28")
