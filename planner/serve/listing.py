"""What may be named in a scenario: the catalog's models, GPUs and engines, formats, lengths, presets and fields."""

from __future__ import annotations

from typing import Any

from planner.catalog import LENGTH_SET_TITLES, engine_names, get_engine, get_gpu, get_model, gpu_names, model_names
from planner.model import kv_dtype_names, weight_dtype_names
from planner.scenario import field_rows, preset_names

GPU_FIGURES = ("vendor", "architecture", "memory_gib", "memory_bandwidth_gb_s", "bf16_tflops", "fp8_tflops")
KINDS = ("models", "gpus", "engines", "weight_dtypes", "kv_cache_dtypes", "length_traces", "presets", "fields")


def entries(what: str) -> list[dict[str, Any]]:
    """The entries of one of `KINDS`, each with its `name`."""
    if what == "fields":
        return field_rows()
    if what == "gpus":
        gpus = [get_gpu(name) for name in gpu_names()]
        return [{"name": gpu.name} | {figure: getattr(gpu, figure) for figure in GPU_FIGURES} for gpu in gpus]
    if what == "models":
        return [{"name": name} | _model_figures(name) for name in model_names()]
    if what == "engines":
        return [{"name": name, "family": get_engine(name).family} for name in engine_names()]
    if what == "length_traces":
        return [{"name": name, "title": title} for name, title in LENGTH_SET_TITLES.items()]
    names = {"weight_dtypes": weight_dtype_names, "kv_cache_dtypes": kv_dtype_names, "presets": preset_names}[what]()
    return [{"name": name} for name in names]


def _model_figures(name: str) -> dict[str, Any]:
    shape = get_model(name)
    return {
        "num_parameters": shape.num_parameters,
        "num_active_parameters": shape.num_active_parameters,
        "longest_context_tokens": shape.longest_context,
    }
