"""A calibration as a file that `plan --calibration` reads, and as text for a terminal."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np

from planner.arrays import Floats
from planner.errors import InvalidInput
from planner.reading.calibrating import FIGURES, NINETY, Calibration
from planner.scenario import CALIBRATION, ERRORS, SCALES, Scenario, to_query
from planner.units import counted

KIND, VERSION = "headroom calibration", 1
#: what the file says of the deployment, for its reader
DEPLOYMENT = (
    *("model", "weight_dtype", "kv_cache_dtype", "gpu", "tensor_parallel_size", "pipeline_parallel_size"),
    *("attention_data_parallel_size", "engine", "engine_version"),
)
KEPT_BAND = "the band stays that of published runs"
VALID = "a calibration as `python -m planner calibrate BENCHMARK --out FILE` writes it"


def calibration_dict(made: Calibration) -> dict[str, Any]:
    """A calibration as plain types: its fields of the Scenario, the deployment, each factor and each figure."""
    return {
        "kind": KIND,
        "version": VERSION,
        "deployment": {name: getattr(made.scenario, name) for name in DEPLOYMENT},
        "calibration": {name: getattr(made.scenario, name) for name in CALIBRATION},
        "factors": [dataclasses.asdict(item) for item in made.factors],
        "figures": [dataclasses.asdict(item) for item in made.figures],
        "median_error": {when: made.error(when) for when in ("before", "after", "left_out")},
        "link": to_query(made.scenario),
    }


def with_calibration(scenario: Scenario, text: str, name: str = "calibration") -> Scenario:
    """The scenario with the calibration of a file.

    Parameters
    ----------
    scenario : Scenario
        The plan.
    text : str
        JSON as `calibration_dict` makes it.
    name : str
        The field that errors name.

    Raises
    ------
    InvalidInput
        When the text is no calibration, or one of another deployment.
    """
    try:
        body = json.loads(text)
        fields = dict(body["calibration"])
        ours = body["kind"] == KIND and set(fields) <= set(CALIBRATION)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidInput(name, text[:40], VALID) from error
    if not ours:
        raise InvalidInput(name, str(body["kind"])[:40], VALID)
    made = scenario.replace(**fields)
    if made.not_calibrated_for:
        known = body.get("deployment")
        of = f"of {known.get('model')} on {known.get('gpu')}" if isinstance(known, dict) else "of another deployment"
        raise InvalidInput(
            name, of, f"one of the plan's own deployment; it has another {' and '.join(made.not_calibrated_for)}"
        )
    return made


def factor_sd_of(text: str) -> Floats:
    """How uncertain a file's factors still are: standard deviation of each logarithm, in the order of `SCALES`.

    Raises
    ------
    InvalidInput
        When the text is no calibration.
    """
    try:
        ranges = {item["name"]: math.log(item["high"] / item["low"]) for item in json.loads(text)["factors"]}
        found = np.array([ranges[name] / (2 * NINETY) for name in SCALES])
        if not (np.isfinite(found) & (found > 0)).all():
            raise ValueError("no range")
        return found
    except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError) as error:
        raise InvalidInput("calibration", text[:40], VALID) from error


def calibration_text(made: Calibration) -> str:
    """The factors with their ranges, then each figure before, after and left out."""
    lines = [
        f"Calibrated to {counted(made.runs, 'run')}. Median error: before {_percent(made, 'before')}, after "
        f"{_percent(made, 'after')}, left out {_percent(made, 'left_out')}.",
        "",
        f"{'time, measured ÷ predicted':34} {'factor':>7}   range of 90 %",
    ]
    for item in made.factors:
        seen = "" if item.is_seen else "   these runs do not show it"
        lines.append(f"{item.label:34} {item.value:7.3g}   {item.low:.3g} to {item.high:.3g}{seen}")
    lines += ["", f"{'run':>4} {'figure':20} {'measured':>11} {'before':>11} {'after':>11} {'left out':>11}"]
    for row in made.figures:
        cells = " ".join(f"{value:11,.5g}" for value in (row.measured, row.before, row.after, row.left_out))
        lines.append(f"{row.run:>4} {row.column:20} {cells}")
    lines.append("")
    for figure in FIGURES:
        error = getattr(made.scenario, ERRORS[figure])
        said = f"further runs within ± {100 * math.expm1(error):.0f} % (standard deviation)" if error else KEPT_BAND
        lines.append(f"{figure}: {said}")
    return "\n".join([*lines, "", f"Plan with it: {to_query(made.scenario)}"])


def _percent(made: Calibration, when: str) -> str:
    return f"{100 * made.error(when):.1f} %"
