"""What a file says: its kind, each figure with its line, what was not understood, and the Scenario it describes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.accuracy import arrivals_of, find_engine_preset, find_gpu, find_model, lengths_of, read_case
from planner.catalog import get_engine, get_model
from planner.errors import InvalidInput, PlannerError
from planner.reading.benchmarks import saved_runs, tables_in
from planner.reading.figures import Understood
from planner.reading.metrics_text import metrics_in
from planner.reading.peers import peer_runs, peer_scenario, run_planned
from planner.reading.runs import Run
from planner.reading.startup import StartUp, start_up_in
from planner.reading.text import lines_of, text_of
from planner.scenario import Scenario, fields_by_name, message
from planner.workload import TRACE_ROLES, Columns, TraceSummary, columns_in, draw, fitted, read_trace, summary_of

#: groups of fields that a start-up log says nothing about: they stay as the user has them
KEPT_GROUPS = ("traffic", "targets", "prices", "simulation", "measured")
SHOWN_CHARS = 120
HEAD_BYTES = 400_000  # of a file, in which its first two lines are looked for
READABLE = (
    "a start-up log of vLLM, SGLang, TensorRT-LLM, llama.cpp, Ollama, TGI or LMDeploy, a benchmark's table, CSV or "
    "JSON, Prometheus text of a running engine, or a recording of traffic (CSV or JSON lines with times and tokens, a "
    "request or access log)"
)
UNUSED = "the plan has no such figure"
LOADS = ("concurrency", "request_rate_rps", "arrival")  # columns, each of which states one
CONTEXT_SLACK_TOKENS = 16  # of the context beyond the longest request, where a benchmark states no context
#: names of settings as the Scenario has them, where a start-up row's column is shorter
LONG_NAMES = {
    "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "dp": "data_parallel_size",
    "ep": "enable_expert_parallel",
    "weight_quant": "quantization",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NotUnderstood:
    """Something in the file that the plan cannot use, and why. `line` 0: the file as a whole."""

    text: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a file says.

    `kind` names what it is ("vllm start-up log", "vllm bench serve or SGLang bench_serving", …). `measured` holds
    figures of the start in GiB and tokens, `runs` the benchmark's runs. `scenario` is the base with what the file
    states filled in; None where it describes no plan, and then `problem` says why. `traffic` is set for a recording of
    requests, whose figures belong to line 0, the whole file.
    """

    kind: str
    understood: tuple[Understood, ...]
    not_understood: tuple[NotUnderstood, ...]
    measured: Mapping[str, float] = field(default_factory=dict)
    outcome: str = ""
    runs: tuple[Run, ...] = ()
    scenario: Scenario | None = None
    problem: str = ""
    traffic: TraceSummary | None = None


def read(data: bytes | str, base: Scenario | None = None, columns: Mapping[str, str] | None = None) -> Reading:
    """Read what an engine or a benchmark printed.

    Parameters
    ----------
    data : bytes or str
        A start-up log (vLLM, SGLang, TensorRT-LLM, llama.cpp, Ollama, TGI, LMDeploy), a benchmark's table, CSV or JSON
        (vllm bench, SGLang's benchmarks, GuideLLM, GenAI-Perf, AIPerf, trtllm-bench, llama-bench, and those of
        `report_lines.csv`, `result_columns.csv` and `report_paths.csv`), Prometheus text of a running engine, or
        several of them in one file; the result of another planner (AIConfigurator's rows, llm-d
        Planner's JSON); or a recording of traffic, as `read_trace` reads it. Recognised
        by content. At most 50 MB.
    base : Scenario, optional
        What stays where the file is silent; None: the form's defaults.
    columns : mapping, optional
        Of recorded traffic: the column of "arrival", "prompt" and "output", as `read_trace` takes them.

    Returns
    -------
    Reading
        Prompts and answers in a log are never kept: only the figures and settings that the tables name.

    Raises
    ------
    InvalidInput
        When the file is empty, too large, an archive, or nothing in it is known.
    """
    text = text_of(data)
    if columns or _begins_as_traffic(text):
        return _recorded(text, text.lstrip().partition("\n")[0], base or Scenario(), columns)
    lines = lines_of(text)
    runs = peer_runs(text) or saved_runs(text)
    is_saved = bool(runs) and (runs[0].is_prediction or text.lstrip()[:1] in "{[")
    start = None if is_saved else start_up_in(lines)
    runs = runs or tables_in(lines)
    if not runs:
        metrics = metrics_in(lines)
        runs = (metrics,) if metrics else ()
    if runs and runs[0].tells_deployment:
        start = None  # the report repeats the engine's version and settings
    if start is None and not runs:
        return _recorded(text, lines[0].text, base or Scenario())
    return _reading(start, runs, base or Scenario())


def _reading(start: StartUp | None, runs: tuple[Run, ...], base: Scenario) -> Reading:
    open_points: list[NotUnderstood] = []
    understood: list[Understood] = [item for run in runs for item in run.understood]
    scenario: Scenario | None = base
    problem = ""
    if start is not None:
        said = _settings(start)
        names = {item.name for item in said}
        understood = [*said, *(item for item in start.understood if item.name not in names), *understood]
        open_points += _unused(start)
    try:
        if start is not None:
            scenario = _started(start, base, open_points)
        for run in runs[:1]:
            logged = scenario
            open_points += [NotUnderstood(text=text, line=line, reason=UNUSED) for line, text in run.unused]
            scenario = run_scenario(run, scenario or base, open_points)
            open_points += _other_model(start, run, logged, scenario)
    except PlannerError as error:
        scenario, problem = None, " ".join(message(error).split())
    if len(runs) > 1:
        open_points.append(NotUnderstood(text=f"{len(runs)} runs", line=0, reason="the scenario is that of the first"))
    return Reading(
        kind=_kind(start, runs),
        understood=tuple(understood),
        not_understood=tuple(open_points),
        measured=dict(start.measured) if start else {},
        outcome=start.outcome if start else "",
        runs=runs,
        scenario=scenario,
        problem=problem,
    )


def _other_model(start: StartUp | None, run: Run, logged: Scenario | None, made: Scenario) -> Iterable[NotUnderstood]:
    """That the log in a file names another model than its benchmark, whose the plan takes."""
    named = start.inputs.get("model", "") if start is not None else ""
    if logged is not None and named and find_model(named) is not None and made.model != logged.model:
        text = f"model {run.columns.get('model', made.model)}"[:SHOWN_CHARS]
        reason = f"the log names {logged.model}; the plan takes {made.model}, that of the benchmark"
        yield NotUnderstood(text=text, line=0, reason=reason)


def columns_of(data: bytes | str) -> Columns | None:
    """The columns of an uploaded table, for the user to say which is what; None where it is none."""
    try:
        text = text_of(data[:HEAD_BYTES])
    except InvalidInput:
        return None
    return columns_in(text)


def _begins_as_traffic(text: str) -> bool:
    """Whether the first lines are a table or records of requests, with their times and tokens, and no benchmark's."""
    head = text[:HEAD_BYTES].rpartition("\n")[0]
    known = columns_in(head)
    if known is None or len(known.known) < len(TRACE_ROLES) or head.lstrip().startswith("["):
        return False
    return not (saved_runs(head) or peer_runs(head) or tables_in(lines_of(head)))


def _recorded(text: str, first: str, base: Scenario, columns: Mapping[str, str] | None = None) -> Reading:
    """A recording of traffic, which is what is left where no engine and no benchmark speaks."""
    try:
        requests = read_trace(text if "\n" in text else f"{text}\n", columns=columns, lengths=draw(base))
    except InvalidInput as error:
        if columns or (error.field.startswith("trace line") and error.field != "trace line 1"):
            raise  # a recording, with a line that is wrong
        raise InvalidInput("file", first.strip()[:SHOWN_CHARS], READABLE) from error
    told = summary_of(requests)
    figures = {
        "requests": (float(told.num_requests), ""),
        "span_s": (told.span_s, "s"),
        "mean_rate_rps": (told.mean_rps, "req/s"),
        "peak_rate_rps": (told.peak_rps, f"req/s over {told.bin_s:,.3g} s"),
        "gap_cv": (told.gap_cv, "(1: Poisson)"),
        "prompt_mean_tokens": (told.mean_prompt_tokens, "tokens"),
        "output_mean_tokens": (told.mean_output_tokens, "tokens"),
        "reused_prompt_share": (told.reused_fraction, ""),
    }
    return Reading(
        kind="recorded traffic",
        understood=tuple(
            Understood(name=name, value=value, unit=unit, line=0) for name, (value, unit) in figures.items()
        ),
        not_understood=tuple(NotUnderstood(text="note", line=0, reason=note) for note in requests.notes),
        scenario=fitted(base, told),
        traffic=told,
    )


def _kind(start: StartUp | None, runs: tuple[Run, ...]) -> str:
    kinds = []
    if start is not None:
        logged = start.understood or any(item.said != "command" for item in start.settings)
        kinds = [f"{start.engine} {'start-up log' if logged else 'command'}"]
    return " and ".join([*kinds, *dict.fromkeys(run.tool for run in runs)])


def _settings(start: StartUp) -> list[Understood]:
    said = (
        Understood(
            name=LONG_NAMES.get(item.column, item.name if item.column == "flag" else item.column),
            value=item.value[:SHOWN_CHARS],
            unit="",
            line=item.line,
        )
        for item in start.settings
        if item.column not in ("", "-")
    )
    return list(dict.fromkeys(said))  # vLLM prints model and model_tag: one figure


def _unused(start: StartUp) -> list[NotUnderstood]:
    found = [
        NotUnderstood(
            text=f"--{item.name.replace('_', '-')} {item.value}"[:SHOWN_CHARS],
            line=item.line,
            reason="the plan has no input for it",
        )
        for item in start.settings
        if not item.column and item.said != "configuration"
    ]
    if start.starts > 1:
        found.append(NotUnderstood(text=f"{start.starts} starts", line=0, reason="the last one is read"))
    return found


def _started(start: StartUp, base: Scenario, open_points: list[NotUnderstood]) -> Scenario:
    """The base with the engine, model and hardware of a log; a model or GPU that it does not name stays."""
    row = dict(start.inputs)
    open_points += _stands_in(start.engine, find_engine_preset(start.engine))
    named = row.get("model", "")
    if not named or find_model(named) is None:
        reason = (
            f"no such model in the catalog; {base.model} stays" if named else f"the log names none; {base.model} stays"
        )
        open_points.append(NotUnderstood(text=f"model {named}".strip()[:SHOWN_CHARS], line=0, reason=reason))
        row["model"] = base.model
    try:
        case = read_case(row)
    except InvalidInput as error:
        if error.field != "max_model_len":
            raise
        told = NotUnderstood(text=f"max_model_len {row.pop('max_model_len')}", line=0, reason=f"expected {error.valid}")
        open_points.append(told)
        case = read_case(row)
    changes = {
        name: getattr(case.scenario, name)
        for name, declared in fields_by_name().items()
        if declared.metadata["group"] not in KEPT_GROUPS and name != "title"
    }
    if not case.gpu_known:
        kept = [name for name, declared in fields_by_name().items() if declared.metadata["group"] == "gpu"]
        changes |= {name: getattr(base, name) for name in ("gpu", "gpu_total_gib", *kept)}
        open_points.append(NotUnderstood(text="GPU", line=0, reason=f"the log names none; {base.gpu} stays"))
    return base.replace(**changes)


def run_scenario(run: Run, base: Scenario, open_points: list[NotUnderstood] | None = None) -> Scenario:
    """The base with what one run of a benchmark states: its traffic, and its deployment where the report names it.

    Parameters
    ----------
    run : Run
        Of the file.
    base : Scenario
        What stays where the run is silent.
    open_points : list, optional
        Where to add what could not be used.

    Raises
    ------
    InvalidInput
        When the run states what no plan can have.
    """
    for name, value in run.columns.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidInput(name, value, "a number of fewer digits")
    if run.is_prediction:
        return peer_scenario(run, base)
    fill = _measured_deployment if run.tells_deployment else _measured_traffic
    return fill(run, base, [] if open_points is None else open_points)


def _measured_deployment(run: Run, base: Scenario, open_points: list[NotUnderstood]) -> Scenario:
    """The base with the deployment and the traffic of a report that names both; all requests at once without users."""
    columns = run.columns
    named = find_gpu(str(columns["gpu"])) if columns.get("gpu") else None
    if named is None:
        reason = "no such GPU in the catalog" if columns.get("gpu") else "the report names none"
        text = f"GPU {columns.get('gpu', '')}".strip()[:SHOWN_CHARS]
        open_points.append(NotUnderstood(text=text, line=0, reason=f"{reason}; {base.gpu} stays"))
    row = dict(columns) | {
        "engine": columns.get("engine", run.tool),
        "gpu": named or base.gpu,
        "n_gpus": float(columns.get("tp", 1)) * float(columns.get("pp", 1)),
        "arrival": "concurrency" if columns.get("concurrency") else "offline",
        "kv_dtype": str(columns.get("kv_dtype", "")).lower(),
    }
    made = run_planned(row)
    for name in ("max_num_seqs", "max_num_batched_tokens"):
        if isinstance(columns.get(name), float):
            made = made.replace(**{name: int(float(columns[name]))})
    kept = ("targets", "prices", "measured")
    fields = fields_by_name().items()
    return base.replace(
        **{
            name: getattr(made, name)
            for name, field in fields
            if field.metadata["group"] not in kept and name != "title"
        }
    )


def _measured_traffic(run: Run, base: Scenario, open_points: list[NotUnderstood]) -> Scenario:
    """The base with the model and the traffic of a benchmark's run."""
    columns: dict[str, Any] = dict(run.columns)
    changes: dict[str, Any] = {}
    if columns.get("model"):
        found = find_model(str(columns["model"]))
        if found is None:
            open_points.append(
                NotUnderstood(text=str(columns["model"])[:SHOWN_CHARS], line=0, reason="no such model in the catalog")
            )
        elif found != base.model:
            changes |= {"model": found, "model_config": "", "weight_dtype": "auto", "max_model_len": base.max_model_len}
    changes |= _measured_engine(columns, base, open_points)
    columns |= _lengths_told(columns)
    has_lengths = "isl" in columns and "osl" in columns
    if not has_lengths:
        told = "it states no prompt and answer lengths; the plan's own stay"
        open_points.append(NotUnderstood(text=run.tool, line=0, reason=told))
    if not any(columns.get(name) for name in LOADS):
        # without a stated load, what was served is the load
        output = float(columns.get("osl") or math.inf)
        served = columns.get("req_s") or float(columns.get("output_tok_s_total", 0.0)) / output
        if served:
            columns["request_rate_rps"] = served
        else:
            told = "it states no load; the plan's own stays"
            open_points.append(NotUnderstood(text=run.tool, line=0, reason=told))
    cells = {name: "" if value is None else str(value) for name, value in columns.items()}
    changes |= arrivals_of(cells, {}) if any(cells.get(name) for name in LOADS) else {}
    if not has_lengths:
        return base.replace(**changes)
    changes |= lengths_of(cells, {})
    longest = math.ceil(float(columns["isl"]) + float(columns["osl"]))
    if base.max_model_len < longest:  # it ran, so the engine's context held its requests
        limit = get_model(changes.get("model", base.model)).longest_context if _in_catalog(changes, base) else longest
        changes["max_model_len"] = max(base.max_model_len, min(limit, longest + CONTEXT_SLACK_TOKENS))
    return base.replace(**changes)


def _lengths_told(columns: Mapping[str, Any]) -> dict[str, float]:
    """Mean lengths that a run states only by its totals or its rates."""
    found = {}
    count, rate, output = (columns.get(name) for name in ("n_requests", "req_s", "output_tok_s_total"))
    for side, total in (("isl", "total_input_tokens"), ("osl", "total_output_tokens")):
        if side not in columns and count and columns.get(total):
            found[side] = float(columns[total]) / float(count)
    if rate and output and "osl" not in columns:
        found.setdefault("osl", float(output) / float(rate))
    if rate and output and columns.get("total_tok_s") and "isl" not in columns:
        found.setdefault("isl", (float(columns["total_tok_s"]) - float(output)) / float(rate))
    return {side: tokens for side, tokens in found.items() if tokens > 0}


def _measured_engine(columns: Mapping[str, Any], base: Scenario, open_points: list[NotUnderstood]) -> dict[str, Any]:
    """The engine and the GPU that a report names where they are not the base's."""
    changes: dict[str, Any] = {}
    engine = find_engine_preset(str(columns["engine"])) if columns.get("engine") else base.engine
    if engine != base.engine:
        changes |= {"engine": engine, "engine_version": fields_by_name()["engine_version"].default}
        open_points += _stands_in(str(columns["engine"]), engine)
    if columns.get("gpu"):
        found = find_gpu(str(columns["gpu"]))
        if found is None:
            text = str(columns["gpu"])[:SHOWN_CHARS]
            open_points.append(NotUnderstood(text=text, line=0, reason=f"no such GPU in the catalog; {base.gpu} stays"))
        elif found != base.gpu:
            changes["gpu"] = found
    return changes


def _stands_in(named: str, engine: str) -> Iterable[NotUnderstood]:
    """That the plan takes an engine of no name for one that the catalog lacks."""
    if get_engine(engine).family == "generic":
        reason = "no such engine in the catalog; the plan takes one that batches continuously over a paged cache"
        yield NotUnderstood(text=f"engine {named}"[:SHOWN_CHARS], line=0, reason=reason)


def _in_catalog(changes: Mapping[str, Any], base: Scenario) -> bool:
    return find_model(str(changes.get("model", base.model))) is not None
