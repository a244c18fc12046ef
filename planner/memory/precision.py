"""Whether an engine has kernels for the planned weights and KV cache on this GPU, and what it says otherwise."""

from __future__ import annotations

from planner.catalog import (
    NATIVE,
    REFUSED,
    UNVERIFIED,
    KernelSupport,
    cache_support,
    find_model_id,
    kernel_support,
    published_formats,
)
from planner.inputs import EngineSettings, Gpu
from planner.model import ModelShape, resolve_scheme, scheme, weight_dtype_names

SIXTEEN_BITS = ("bf16", "fp16")
QUANTISES_WHILE_LOADING = ("vllm", "sglang")
CAPABILITIES = {"Volta": "7.0", "Turing": "7.5"}


def running_scheme(model: ModelShape, engine: EngineSettings, gpu: Gpu, weight_dtype: str) -> str:
    """Scheme in which the engine runs the weights: the planned one, or float16 where it falls back to it.

    Parameters
    ----------
    model, engine, gpu : ModelShape, EngineSettings, Gpu
        What is loaded where.
    weight_dtype : str
        "auto" lets the engine choose among 16-bit types: vLLM from 0.9 on takes float16 where the GPU has no bf16
        (vllm/config, "Falling back to"); before, its user says --dtype half.
    """
    planned = resolve_scheme(model, weight_dtype).name
    if planned == "bf16" and weight_dtype == "auto" and engine.family == "vllm":
        found = kernel_support(engine.family, engine.version, gpu, planned)
        return "fp16" if found is not None and found.support == REFUSED else planned
    return planned


def weights_support(
    model: ModelShape, engine: EngineSettings, gpu: Gpu, weight_dtype: str
) -> tuple[str, KernelSupport | None]:
    """The scheme that runs, and how the engine runs it on this GPU (None: nothing is known)."""
    running = running_scheme(model, engine, gpu, weight_dtype)
    return running, kernel_support(engine.family, engine.version, gpu, running)


def precision_error(model: ModelShape, engine: EngineSettings, gpu: Gpu, weight_dtype: str, kv_cache_dtype: str) -> str:
    """Why the engine refuses the weights or the KV cache on this GPU; "" where it does not.

    Parameters
    ----------
    model, engine, gpu : ModelShape, EngineSettings, Gpu
        What is loaded where.
    weight_dtype, kv_cache_dtype : str
        As planned; the type of the cache is resolved.

    Returns
    -------
    str
        The engine's message where its source has one, else what the source says. Source: kernel_support.csv.
    """
    running, found = weights_support(model, engine, gpu, weight_dtype)
    if found is not None and found.support == REFUSED:
        if engine.family == "vllm" and running == "bf16":
            return (
                "Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your "
                f"{gpu.name} GPU has compute capability {CAPABILITIES.get(gpu.architecture, 'below 8.0')}. You can use "
                "float16 instead by explicitly setting the `dtype` flag in CLI, for example: --dtype=half."
            )
        label = scheme(running).label
        return f"{label} weights on {gpu.name} ({gpu.architecture}): {found.note}"
    cache = cache_support(engine.family, engine.version, gpu, kv_cache_dtype)
    if cache is not None and cache.support == REFUSED:
        return f"KV cache in {kv_cache_dtype} on {gpu.name} ({gpu.architecture}): {cache.note}"
    return ""


def native_schemes(model: ModelShape, engine: EngineSettings, gpu: Gpu, weight_dtype: str) -> tuple[str, ...]:
    """Other weight schemes that the engine runs natively on this GPU, the nearest in bits first.

    Parameters
    ----------
    model, engine, gpu : ModelShape, EngineSettings, Gpu
        What is loaded where.
    weight_dtype : str
        As planned.

    Returns
    -------
    tuple of str
        16-bit types, formats in which the model is published, FP8 where the engine quantises while it loads, and GGUF
        for llama.cpp.
    """
    planned = resolve_scheme(model, weight_dtype)
    known = find_model_id(model.name) is not None
    published = [item.quantization for item in published_formats(model.name)] if known else []
    options = [*SIXTEEN_BITS, *published]
    options += ["fp8"] if engine.family in QUANTISES_WHILE_LOADING and not model.quantization else []
    options += (
        [name for name in weight_dtype_names() if name.startswith("gguf_")] if engine.family == "llamacpp" else []
    )
    running = running_scheme(model, engine, gpu, weight_dtype)
    native = [
        name
        for name in dict.fromkeys(options)
        if name != running and _runs(engine, gpu, name, running) and not _dequantises(model, name)
    ]
    return tuple(sorted(native, key=lambda name: abs(scheme(name).bits_per_weight - planned.bits_per_weight)))


def _runs(engine: EngineSettings, gpu: Gpu, name: str, running: str) -> bool:
    """Whether a scheme is native; of 16-bit types also one that nobody has verified, where the other is refused."""
    found = kernel_support(engine.family, engine.version, gpu, name)
    support = found.support if found is not None else ""
    return support == NATIVE or (support == UNVERIFIED and name in SIXTEEN_BITS and running in SIXTEEN_BITS)


def _dequantises(model: ModelShape, name: str) -> bool:
    """Whether a 16-bit type is asked of a model that is published in fewer bits alone."""
    if name not in SIXTEEN_BITS or not model.quantization or find_model_id(model.name) is None:
        return False
    return not any(item.quantization == "bf16" for item in published_formats(model.name))
