"""How the engine runs the planned weights on this GPU, and the nearest format that it runs natively."""

from __future__ import annotations

from typing import NamedTuple

from planner.catalog import EMULATED, REFUSED, UNVERIFIED, WEIGHT_ONLY, published_formats
from planner.errors import PlannerError
from planner.memory import native_schemes, weights_support
from planner.model import resolve_scheme, scheme
from planner.scenario import CONFIG, CUSTOM, Scenario

TITLES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM", "tgi": "TGI", "llamacpp": "llama.cpp"}


class KernelNote(NamedTuple):
    """What to know about the kernels of a plan; `change` are the fields of the nearest native choice."""

    severity: str  # warning or note
    text: str
    change: dict[str, object]


def kernel_note(scenario: Scenario) -> KernelNote | None:
    """What the plan has to say about its weights' kernels; None where they are native, by design, or unknown.

    Parameters
    ----------
    scenario : Scenario
        Model, GPU, engine with its release, and weight format.
    """
    engine, gpu, model = scenario.engine_settings, scenario.gpu_spec, scenario.model_shape
    running, found = weights_support(model, engine, gpu, scenario.weight_dtype)
    title = TITLES.get(engine.family, engine.name)
    planned = resolve_scheme(model, scenario.weight_dtype)
    if running != planned.name:
        text = f"{gpu.name} has no {planned.label}: {title} runs float16 in its place, and the plan is for that."
        return KernelNote("note", text, {})
    run = scheme(running)
    if found is None or found.support == REFUSED or run.is_weight_only:
        return None
    label = run.label
    if found.support == UNVERIFIED:
        text = f"Not verified: no source says how {title} runs {label} weights on {gpu.architecture} GPUs."
        return KernelNote("note", text, {})
    if found.support not in (WEIGHT_ONLY, EMULATED):
        return None
    text = f"{title} has no kernels for {label} on {gpu.name}: it "
    if found.support == WEIGHT_ONLY:
        text += "runs the weights weight-only, reading few bits and multiplying in 16, so prompts are no faster."
    else:
        text += "emulates their products."
    change = native_change(scenario)
    if change:
        nearest = str(change["weight_dtype"])
        text += f" The nearest that runs natively here is {scheme(nearest).label}{_where(scenario, nearest)}."
    return KernelNote("warning" if change else "note", text, change)


def native_change(scenario: Scenario) -> dict[str, object]:
    """The fields that turn a plan to the nearest weight format that its engine runs natively on its GPU.

    Empty where there is none, or the other inputs forbid it.
    """
    engine, gpu = scenario.engine_settings, scenario.gpu_spec
    for name in native_schemes(scenario.model_shape, engine, gpu, scenario.weight_dtype):
        try:
            scenario.replace(weight_dtype=name)
        except PlannerError:
            continue
        return {"weight_dtype": name}
    return {}


def _where(scenario: Scenario, name: str) -> str:
    """Which published checkpoint has the format, in brackets."""
    if scenario.model in (CONFIG, CUSTOM):
        return ""
    found = next((item for item in published_formats(scenario.model) if item.quantization == name), None)
    return f" ({found.checkpoint})" if found is not None else ""
