"""A start-up log as a row of measurements: what the engine was told, and what it printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.reading.figures import Understood, engine_of, figures_in
from planner.reading.settings import Setting, settings_in
from planner.reading.text import Line
from planner.units import GIB, MIB

#: an engine begins here: after the last one with another model or release, the log is of that start
_START = re.compile(
    r"(?:LLM engine \(v(?P<version>[\w.+]+)\).*?model='(?P<model>[^']*)'"
    r"|server_args=ServerArgs\(model_path='(?P<path>[^']*)')"
)
#: of a block of the cache where the log does not say: vLLM --block-size, lmdeploy/messages.py cache_block_seq_len
DEFAULT_BLOCK_TOKENS = {"vllm": 16, "lmdeploy": 64}
OTHERS_HOLD_GIB = 2.0  # memory that is gone before the start: above this, other programs hold it, not the driver
#: input columns that a figure of the log may fill where no setting does
_INPUTS = (
    *("gpu", "gpu_mem_gib", "gpu_memory_utilization", "max_model_len", "max_num_seqs", "max_num_batched_tokens"),
    *("block_size", "weight_quant", "kv_cache_dtype"),
)
#: what engines print as the result of a start, in the names of published rows
MEASURED = (
    *("weights_gib_per_gpu", "activation_peak_gib", "non_torch_gib", "cuda_graph_gib", "cuda_graph_estimate_gib"),
    *(
        "available_kv_gib",
        "kv_tokens",
        "gpu_blocks",
        "max_concurrency",
        "kv_needed_gib_for_max_len",
        "est_max_model_len",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartUp:
    """One start of an engine: settings and figures with their lines, and both as columns of a start-up row."""

    engine: str
    settings: tuple[Setting, ...]
    understood: tuple[Understood, ...]
    inputs: Mapping[str, str]
    measured: Mapping[str, float]
    outcome: str
    starts: int


def start_up_in(lines: tuple[Line, ...]) -> StartUp | None:
    """The start of an engine that a log records.

    Parameters
    ----------
    lines : tuple of Line
        The log; of several starts with other models or releases the last is read.

    Returns
    -------
    StartUp or None
        None where no line is an engine's.
    """
    engine = engine_of(lines)
    if not engine:
        return None
    lines, starts = _last_start(lines)
    settings, figures = settings_in(lines, engine), figures_in(lines, engine)
    if not settings and not figures:
        return None
    inputs = _inputs(engine, settings, figures)
    derived = _derived(engine, figures, inputs)
    return StartUp(
        engine=engine,
        settings=settings,
        understood=tuple(sorted((*figures, *derived), key=lambda item: item.line)),
        inputs=inputs,
        measured={
            item.name: float(item.value)
            for item in (*figures, *derived)
            if item.name in MEASURED and isinstance(item.value, float)
        },
        outcome=_outcome(figures, derived),
        starts=starts,
    )


def _last_start(lines: tuple[Line, ...]) -> tuple[tuple[Line, ...], int]:
    """Lines of the last start whose model or release differs from the one before, and the number of such starts."""
    begins: list[tuple[int, str]] = []
    for at, line in enumerate(lines):
        match = _START.search(line.text) if "model" in line.text else None
        if match:
            what = f"{match['version']} {match['model'] or match['path']}"
            if not begins or begins[-1][1] != what:
                begins.append((at, what))
    if len(begins) < 2:
        return lines, 1
    first = begins[-1][0]
    # the arguments stand a few lines before the engine begins, after the end of the start before
    return lines[max(begins[-2][0] + 1, _arguments_before(lines, first)) :], len(begins)


def _arguments_before(lines: tuple[Line, ...], at: int) -> int:
    near = (index for index in range(at, max(0, at - 60), -1) if "non-default args" in lines[index].text)
    return next(near, at)


def _inputs(engine: str, settings: Iterable[Setting], figures: Iterable[Understood]) -> dict[str, str]:
    """Input columns of the row: a setting counts before a figure, a command before a resolved configuration."""
    row: dict[str, str] = {"engine": engine}
    flags: list[str] = []
    parallel: list[str] = []
    for item in settings:
        if item.column == "flag" and item.said != "configuration":
            flags.append(f"--{item.name.replace('_', '-')} {item.value}")
        elif item.column == "no_prefix_caching" and _is_on(item.value):
            flags.append("--no-enable-prefix-caching")
        elif item.column == "prefix_caching":
            flags += _prefix_flag(item)
        elif item.column == "dp" and item.value not in ("1", "0"):
            parallel.append(f"DP{item.value}")
        elif item.column == "dp_attention" and _is_on(item.value):
            parallel.append("attention")
        elif item.column == "ep" and _is_on(item.value):
            parallel.append("EP")
        elif item.column == "block_size" and item.said == "configuration":
            continue  # resolved: of a hybrid it is what the engine made of it
        elif item.column == "enforce_eager":
            row.setdefault("enforce_eager", "True" if _is_on(item.value) else "")
        elif (item.column, item.value) == ("weight_quant", "awq"):  # converted weights are awq_marlin to the engine
            flags.append("--quantization awq")
            row.setdefault(item.column, item.value)
        elif item.column not in ("", "-", "flag", "prefix_caching", "no_prefix_caching", "dp", "dp_attention", "ep"):
            row.setdefault(item.column, item.value)
    told = {item.name: item for item in figures}
    for name in _INPUTS:
        if name in told and not (engine == "sglang" and name == "max_num_seqs"):
            row.setdefault(name, _text(told[name].value))
    if "tensor_parallel_size" in told:
        row.setdefault("tp", _text(told["tensor_parallel_size"].value))
    row["version"] = " ".join(_text(told[name].value) for name in ("engine_version", "engine_core") if name in told)
    row["model"] = _model(row.get("model", ""), told.get("model_name"))
    row |= _llama_context(row, told)
    free, total = told.get("free_mem_gib"), told.get("gpu_mem_gib")
    if free and total and float(total.value) - float(free.value) > OTHERS_HOLD_GIB:
        flags.append(f"Free memory on device ({free.value:.2f}/{total.value:.2f} GiB)")
    row["other_flags"], row["dp_ep"] = "; ".join(flags), " ".join(parallel)
    return {name: value for name, value in row.items() if value}


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.12g}"


def _is_on(value: str) -> bool:
    return value.lower() in ("true", "1", "yes", "on")


def _prefix_flag(item: Setting) -> list[str]:
    if _is_on(item.value):
        return ["--enable-prefix-caching"] if item.said != "configuration" else []
    return ["--no-enable-prefix-caching"]


def _model(stated: str, general_name: Understood | None) -> str:
    """Model as a hub id or name: a path on the writer's disk is its last part, a blob of Ollama says nothing."""
    if re.search(r"sha256-[0-9a-f]{12}", stated):
        stated = ""
    if stated.startswith(("/", ".", "~", "\\")) or re.match(r"[A-Za-z]:\\", stated) or stated.lower().endswith(".gguf"):
        cached = re.search(r"models--([^/]+?)--([^/]+)", stated)
        parts = [part for part in re.split(r"[\\/]", stated) if part]
        stated = f"{cached[1]}/{cached[2]}" if cached else (parts[-1] if parts else "")
        stated = re.sub(r"(?:-\d{5}-of-\d{5})?\.gguf$", "", stated, flags=re.IGNORECASE)
    if stated:
        return stated
    return str(general_name.value) if general_name else ""


def _llama_context(row: Mapping[str, str], told: Mapping[str, Understood]) -> dict[str, str]:
    """Context of each slot of llama.cpp: printed by newer builds, else the whole context shared among the slots."""
    if row["engine"] not in ("llama.cpp", "ollama") or "max_model_len" in row:
        return {}
    whole = row.get("n_ctx") or (_text(told["n_ctx"].value) if "n_ctx" in told else "")
    slots = row.get("max_num_seqs", "1")
    if not whole.isdigit() or not slots.isdigit() or int(slots) < 1:
        return {}
    return {"max_model_len": str(int(whole) // int(slots))}


def _derived(engine: str, figures: Iterable[Understood], row: Mapping[str, str]) -> tuple[Understood, ...]:
    """Figures in the names and units of published rows, where an engine prints them in parts or other units."""
    told = {item.name: item for item in figures if isinstance(item.value, float)}
    found: dict[str, tuple[float, int]] = {}

    def say(name: str, source: str, value: float) -> None:
        if name not in told and name not in found:
            found[name] = (value, told[source].line)

    if "weights_mib" in told:
        say("weights_gib_per_gpu", "weights_mib", float(told["weights_mib"].value) * MIB / GIB)
    if "weights_mib_per_gpu" in told:
        say("weights_gib_per_gpu", "weights_mib_per_gpu", float(told["weights_mib_per_gpu"].value) * MIB / GIB)
    if "weights_gib" in told:
        say("weights_gib_per_gpu", "weights_gib", float(told["weights_gib"].value))
    if "kv_k_gib" in told and "kv_v_gib" in told:
        say("available_kv_gib", "kv_k_gib", float(told["kv_k_gib"].value) + float(told["kv_v_gib"].value))
    if "kv_mib" in told:
        say("available_kv_gib", "kv_mib", float(told["kv_mib"].value) * MIB / GIB)
    if "kv_gib" in told:
        say("available_kv_gib", "kv_gib", float(told["kv_gib"].value))
    if "kv_bytes" in told:
        say("available_kv_gib", "kv_bytes", float(told["kv_bytes"].value) / GIB)
    # from 0.27 on vLLM prints its peak with the estimate of the CUDA graphs, and weights with what is outside torch
    if "peak_with_graphs_gib" in told and "cuda_graph_estimate_gib" in told:
        graphs = float(told["cuda_graph_estimate_gib"].value)
        say("activation_peak_gib", "peak_with_graphs_gib", float(told["peak_with_graphs_gib"].value) - graphs)
    if "consumed_gib" in told and "weights_gib_per_gpu" in told:
        weights = float(told["weights_gib_per_gpu"].value)
        say("non_torch_gib", "consumed_gib", float(told["consumed_gib"].value) - weights)
    if "kv_pool_mib" in told:
        say("available_kv_gib", "kv_pool_mib", float(told["kv_pool_mib"].value) * MIB / GIB)
    if "block_mib" in told and "gpu_blocks" in told:
        whole = float(told["block_mib"].value) * float(told["gpu_blocks"].value)
        say("available_kv_gib", "gpu_blocks", whole * MIB / GIB)
    if engine in DEFAULT_BLOCK_TOKENS and "gpu_blocks" in told:
        block = float(row["block_size"]) if row.get("block_size", "").isdigit() else DEFAULT_BLOCK_TOKENS[engine]
        say("kv_tokens", "gpu_blocks", float(told["gpu_blocks"].value) * block)
    return tuple(
        Understood(name=name, value=value, unit="tokens" if name == "kv_tokens" else "GiB", line=line)
        for name, (value, line) in found.items()
    )


def _outcome(figures: Iterable[Understood], derived: Iterable[Understood]) -> str:
    """How the start ended: "refused", "out of memory", "started", or "" where the log stops before that."""
    names = {item.name for item in (*figures, *derived)}
    if "refusal" in names or "est_max_model_len" in names:
        return "refused"
    if "out_of_memory" in names:
        return "out of memory"
    return "started" if names & {"kv_tokens", "max_concurrency", "available_kv_gib"} else ""
