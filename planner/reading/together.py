"""Several files of one deployment, such as its start-up log and a benchmark: each as it reads alone, and their plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.errors import PlannerError
from planner.reading.reading import KEPT_GROUPS, LONG_NAMES, Reading, read
from planner.scenario import Scenario, fields_by_name, message

#: names under which files state a part of the deployment, where the Scenario has a longer one
FIELDS = LONG_NAMES | {
    "data_parallel_size": "attention_data_parallel_size",
    "dp": "attention_data_parallel_size",
    "enable_expert_parallel": "expert_parallel",
    "ep": "expert_parallel",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFile:
    """One file as it reads alone; `reading` is None where it cannot be read, and then `problem` says why."""

    name: str
    reading: Reading | None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Files of one deployment.

    `scenario` is the base with what they describe: deployments of logs, then the traffic of the first benchmark, then
    recorded traffic; None where no file describes a plan. `contradictions` names what they state differently.
    """

    files: tuple[OwnFile, ...]
    scenario: Scenario | None
    contradictions: tuple[str, ...]


def read_together(
    files: Sequence[tuple[str, bytes]], base: Scenario | None = None, columns: Mapping[str, str] | None = None
) -> Together:
    """Read what several files say of one deployment.

    Parameters
    ----------
    files : sequence of (str, bytes)
        Name and content of each, as `read` takes it.
    base : Scenario, optional
        What stays where the files are silent; None: the form's defaults.
    columns : mapping, optional
        Of recorded traffic, as `read` takes them.
    """
    start = base or Scenario()
    alone = [_alone(name, data, start, columns) for name, data in files]
    known = [(item, data) for item, (_, data) in zip(alone, files, strict=True) if item.reading is not None]
    known = [(item, data) for item, data in known if item.reading is not None and item.reading.scenario is not None]
    chosen = sorted(known, key=lambda pair: _order(pair[0]))
    benchmarks = [pair for pair in chosen if _order(pair[0]) == 1]
    made = start
    for item, data in chosen:
        if item.reading is not None and (item, data) not in benchmarks[1:]:
            traffic = columns if item.reading.traffic is not None else None
            reading = item.reading if made is start else read(data, made, traffic)
            made = reading.scenario or made
    return Together(
        files=tuple(alone), scenario=made if chosen else None, contradictions=tuple(_contradictions(alone, made))
    )


def _alone(name: str, data: bytes, base: Scenario, columns: Mapping[str, str] | None) -> OwnFile:
    try:
        try:
            reading = read(data, base)
        except PlannerError:
            if not columns:
                raise
            return OwnFile(name=name, reading=read(data, base, columns))
        if columns and reading.traffic is not None:
            reading = read(data, base, columns)
        return OwnFile(name=name, reading=reading)
    except PlannerError as error:
        return OwnFile(name=name, reading=None, problem=" ".join(message(error).split()))


def _order(item: OwnFile) -> int:
    """Logs before benchmarks before recorded traffic."""
    reading = item.reading
    return 2 if reading is None or reading.traffic is not None else 1 if reading.runs else 0


def _contradictions(files: Sequence[OwnFile], made: Scenario) -> list[str]:
    stated: dict[str, list[tuple[str, object]]] = {}
    declared = fields_by_name()
    for item in files:
        reading = item.reading
        if reading is None or reading.scenario is None:
            continue
        unknown = {said.text.partition(" ")[0] for said in reading.not_understood}
        for name in dict.fromkeys(figure.name for figure in reading.understood):
            field = FIELDS.get(name, name)
            known = field in declared and declared[field].metadata["group"] not in KEPT_GROUPS
            if known and field not in unknown and str(_said(reading, name)) not in unknown:
                stated.setdefault(field, []).append((item.name, getattr(reading.scenario, field)))
    found = []
    for field, said in stated.items():
        if len({value for _, value in said}) > 1:
            label = declared[field].metadata["label"]
            each = ", ".join(f"{value} in {name}" for name, value in said)
            found.append(f"{label}: {each}; the plan takes {getattr(made, field)}")
    return found


def _said(reading: Reading, name: str) -> object:
    return next(item.value for item in reading.understood if item.name == name)
