"""What fits on a GPU: every model of the catalog that starts there, with its best weights, context and speed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from planner.answer.outcome import Plan
from planner.answer.planning import size
from planner.catalog import (
    created_on,
    get_engine,
    get_gpu,
    get_model,
    gguf_repository,
    model_names,
    one_of_each_kind,
    plain_model_id,
)
from planner.errors import PlannerError, require_int
from planner.inputs import Gpu
from planner.memory import OOM_CAPTURE, OOM_SAMPLER, REFUSED_NO_BLOCKS, REFUSED_STATES, visible_memory_bytes
from planner.model import ModelShape, resolve_scheme, weight_bytes_by_group
from planner.scenario import Scenario, to_query
from planner.units import GIB, counted
from planner.workload import Requests, draw

#: engines to try by the GPU's vendor; vLLM runs on a Mac's CPU alone, llama.cpp on no TPU
ENGINES = {"Apple": ("llama-server",), "Google": ("vllm",), "Intel": ("vllm",), "Huawei": ("vllm",)}
BOTH = ("vllm", "llama-server")
USERS = 8
READ_TOKENS = 1024  # in the cache of each sequence while its speed is measured
#: files that packers make of every model, the widest first
GGUF_FILES = ("gguf_q8_0", "gguf_q6_k", "gguf_q5_k_m", "gguf_q4_k_m", "gguf_q3_k_m", "gguf_q2_k")
#: max_num_seqs to try where the engine's default is too many for the memory
FEWER_SEQUENCES = (64, 8)
HELPED_BY_FEWER = (REFUSED_STATES, REFUSED_NO_BLOCKS, OOM_SAMPLER, OOM_CAPTURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """One model that starts on the GPUs, with one engine.

    `scenario` is its plan for eight users who wait for their answers. `sessions` of the context fit at once; of
    llama-server, which reserves each slot's context, eight are tried at most. The longest context is that of
    one session alone. Speeds are those of decode steps, without
    prompts: `tokens_per_s_alone` of one user, `tokens_per_s_of_eight` of eight together (fewer where fewer sessions
    fit). `created` is the day of its repository, "" where unknown.
    """

    scenario: Scenario
    model: str
    engine: str
    weight_dtype: str
    weights_gib: float
    num_parameters: float
    num_active_parameters: float
    longest_context_tokens: int
    sessions: int
    tokens_per_s_alone: float
    tokens_per_s_of_eight: float
    created: str


def fits(
    gpu: str,
    *,
    count: int = 1,
    context_tokens: int = 8192,
    engines: Iterable[str] | None = None,
    models: Iterable[str] | None = None,
) -> tuple[Fit, ...]:
    """Every model that starts on some GPUs, once for each engine, the largest first.

    Parameters
    ----------
    gpu : str
        A GPU of the catalog.
    count : int
        GPUs that one copy of the model may use.
    context_tokens : int
        Context of one session; a model with a shorter one takes its own. [tokens]
    engines : iterable of str, optional
        Engine presets; those of llama.cpp take GGUF files. None: vLLM and llama-server, where they run on the GPU.
    models : iterable of str, optional
        Names that `get_model` knows; None: all of the catalog, each model once and not its other checkpoints.

    Returns
    -------
    tuple of Fit
        Each in the widest weights that start with this context. Formats: as published, the formats in which others
        publish the model, FP8 where vLLM quantises while it loads; for llama.cpp the usual GGUF files.

    Raises
    ------
    InvalidInput
        When a GPU, an engine or a model is not known, or a number is out of bounds.
    """
    spec = get_gpu(gpu)
    require_int("count", count, at_most=1024)
    require_int("context_tokens", context_tokens, at_least=16, at_most=100_000_000)
    chosen: Iterable[str] = ENGINES.get(spec.vendor, BOTH) if engines is None else engines
    presets = [get_engine(name) for name in chosen]
    probe = draw(Scenario(num_requests=1))
    found = []
    names: Iterable[str] = _models() if models is None else models
    for name in names:
        shape = get_model(name)
        for preset in presets:
            fit = _best(spec, count, context_tokens, preset.name, preset.family, shape, probe)
            if fit is not None:
                found.append(fit)
    return tuple(sorted(found, key=lambda item: (-item.num_parameters, item.model, item.engine)))


def _models() -> Iterator[str]:
    return (name for name in model_names() if plain_model_id(name) == name)


def _best(
    gpu: Gpu, count: int, context: int, engine: str, family: str, shape: ModelShape, probe: Requests
) -> Fit | None:
    """The widest weights with which the model starts; None where none does."""
    room = count * visible_memory_bytes(gpu)
    for weights in _formats(shape, family):
        if sum(weight_bytes_by_group(shape, weights).values()) > room:
            continue
        for split in _splits(count, family):
            started = _started(gpu, context, engine, shape, weights, split, probe)
            if started is not None:
                return _fit(started, probe)
    return None


def _formats(shape: ModelShape, family: str) -> tuple[str, ...]:
    """Weight formats that exist, the widest first."""
    if family == "llamacpp":
        own = ("auto",) if shape.quantization == "mxfp4" else ()
        return (*own, *GGUF_FILES) if gguf_repository(shape.name) or own else ()
    names = ["auto", *(item.quantization for item in one_of_each_kind(shape.name))]
    names += ["fp8"] if not shape.quantization and family in ("vllm", "sglang") else []
    bits = {name: resolve_scheme(shape, name).bits_per_weight for name in names}
    return tuple(sorted(dict.fromkeys(names), key=lambda name: -bits[name]))


def _splits(count: int, family: str) -> tuple[dict[str, int], ...]:
    """Tensor parallel over all GPUs, else pipeline parallel; llama.cpp splits by layers."""
    if count == 1:
        return ({},)
    layers = {"pipeline_parallel_size": count}
    return (layers,) if family == "llamacpp" else ({"tensor_parallel_size": count}, layers)


def _started(
    gpu: Gpu, context: int, engine: str, shape: ModelShape, weights: str, split: dict[str, int], probe: Requests
) -> Plan | None:
    """The model sized with these weights; with fewer sequences where the engine's default number is too many."""
    for most in (None, *FEWER_SEQUENCES):
        try:
            scenario = Scenario(
                model=shape.name,
                gpu=gpu.name,
                engine=engine,
                weight_dtype=weights,
                max_model_len=min(context, shape.longest_context),
                max_num_seqs=most,
                arrivals="closed",
                concurrent_users=USERS,
                num_replicas=1,
                **split,  # type: ignore[arg-type]
            )
            sized = size(scenario, probe, explain=False)
        except PlannerError:
            return None
        if sized.fits or sized.memory.outcome not in HELPED_BY_FEWER:
            return sized if sized.fits else None
    return None


def _fit(sized: Plan, probe: Requests) -> Fit:
    longest = min(sized.memory.longest_context_tokens, sized.model.longest_context)
    if sized.engine.family == "llamacpp":
        sized = _with_slots(sized, probe)
    scenario, memory, model = sized.scenario, sized.memory, sized.model
    sessions = max(1, min(math.floor(memory.max_concurrency), memory.max_num_seqs))
    return Fit(
        scenario=scenario,
        model=model.name,
        engine=scenario.engine,
        weight_dtype=resolve_scheme(scenario.published_shape, scenario.weight_dtype).name,
        weights_gib=memory.weights_bytes * scenario.parallelism.gpus_per_replica / GIB,
        num_parameters=model.num_parameters,
        num_active_parameters=model.num_active_parameters,
        longest_context_tokens=longest,
        sessions=sessions,
        tokens_per_s_alone=decode_rate(sized, 1),
        tokens_per_s_of_eight=decode_rate(sized, min(USERS, sessions)),
        created=created_on(model.name),
    )


def _with_slots(sized: Plan, probe: Requests) -> Plan:
    """llama-server with as many slots as memory holds, up to eight, each with a context of its own."""
    for slots in range(USERS, 0, -1):
        more = size(sized.scenario.replace(max_num_seqs=slots), probe, explain=False)
        if more.fits:
            return more
    return sized


def decode_rate(sized: Plan, sequences: int) -> float:
    """Tokens per second of sequences that decode together, each with `READ_TOKENS` in its cache. [tokens/s]

    Parameters
    ----------
    sized : Plan
        With the step times of an engine that starts.
    sequences : int
        Sequences in the batch; a pipeline has a part of them in each stage.
    """
    table = sized.step_time
    if table is None:
        return math.nan
    stages = table.pipeline_stages
    batch = math.ceil(sequences / stages)
    return sequences / (stages * table.step_s(table.decode_work(batch, READ_TOKENS)))


def fits_text(found: Iterable[Fit]) -> str:
    """The models as a table for a terminal, each with the query string that opens its plan."""
    words = ("engine", 14), ("weights", 13)
    head = f"{'model':<52}" + "".join(f"{word:<{width}}" for word, width in words)
    lines = [f"{head}{'GiB':>7}{'context':>11}{'sessions':>10}{'alone':>8}{'8 users':>9}  plan"]
    for item in found:
        lines.append(
            f"{item.model[:51]:<52}{item.engine:<14}{item.weight_dtype.removeprefix('gguf_'):<13}"
            f"{item.weights_gib:>7.1f}{item.longest_context_tokens:>11,}{item.sessions:>10,}"
            f"{item.tokens_per_s_alone:>8.0f}{item.tokens_per_s_of_eight:>9.0f}  ?{to_query(item.scenario)}"
        )
    count = len(lines) - 1
    lines.append(f"{counted(count, 'row')}. Speeds are output tokens per second of decoding, all users together.")
    return "\n".join(lines)
