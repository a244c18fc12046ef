"""The traffic of a published serving row: how its requests arrived, how many, and how long they were."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from planner.accuracy.cells import needed_number, number_of, text_of
from planner.errors import InvalidInput
from planner.scenario import Scenario
from planner.tables import read_table
from planner.workload import draw

DATASETS = "accuracy/data/dataset_lengths.csv"
#: what the column arrival may say: a closed loop, an open one, everything queued at once
ARRIVALS = ("concurrency", "poisson", "offline")
LEAST_RATE_RPS = 1e-6
REQUESTS_PER_USER = 10  # of a closed loop, where the row does not say how many requests it sent
CUT_AT_MEANS = 5  # longest length ÷ mean, where clients cut conversations at a limit that is not published
COLUMN_OF = {"prompt": "isl", "output": "osl"}
CUT_BY = {"prompt": "max_prompt_tokens", "output": "output_limit_tokens"}
CORRECTIONS = 3  # of a mean by its draw; the first is exact where no length is cut
MEAN_SLACK = 1e-3  # by which the rounding of a cut moves the mean of its law


def arrivals_of(row: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Arrival fields of the scenario and the number of requests.

    Parameters
    ----------
    row : mapping
        Columns of a serving benchmark row.
    said : mapping
        What its notes and the benchmark's scripts say besides.

    Returns
    -------
    dict
        Field of the Scenario to value.

    Raises
    ------
    InvalidInput
        When the row does not say how requests arrived, or says it with a number that no run can have.
    """
    users, published = number_of(row, "concurrency"), number_of(row, "n_requests")
    if said.get("static_batch"):
        batch = max(1, int(users or 0))
        return {"arrivals": "once", "num_requests": batch, "max_num_seqs": batch}
    arrival = text_of(row, "arrival") or _arrival_told_by(row)
    if arrival not in ARRIVALS:
        raise InvalidInput("arrival", arrival, f"one of {', '.join(ARRIVALS)}, or a concurrency or rate that tells")
    if arrival == "concurrency":
        return _closed_loop(row, said)
    rate = _rate_rps(row) if arrival == "poisson" else None
    if rate:
        open_loop = {"arrivals": "poisson", "demand": "rate", "rate_rps": rate, "peak_factor": 1.0}
        return open_loop | {"num_requests": int(published or 500)}
    # Without a rate, an open loop can only be read as a measurement of the highest throughput.
    known = dataset_of(row)
    usual = int(known["num_requests"]) if known and number_of(row, "isl") is None else 1000
    return {"arrivals": "once", "num_requests": int(published or usual)}


def _arrival_told_by(row: Mapping[str, Any]) -> str:
    if number_of(row, "concurrency"):
        return "concurrency"
    return "poisson" if text_of(row, "request_rate_rps") else ""


def _closed_loop(row: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    users = int(needed_number(row, "concurrency"))
    shared = said.get("users_per_replica", users)
    if users > shared * (number_of(row, "n_gpus") or users):
        users = shared  # the published concurrency is that of many replicas together
    count = int(number_of(row, "n_requests") or said.get("requests_per_user", REQUESTS_PER_USER) * users)
    return {"arrivals": "closed", "concurrent_users": users, "num_requests": max(count, 1)}


def _rate_rps(row: Mapping[str, Any]) -> float | None:
    """Stated rate; None where there is none, or where it is infinite, which to clients means "all at once"."""
    if text_of(row, "request_rate_rps").lower() in ("inf", "infinity"):
        return None
    rate = number_of(row, "request_rate_rps")
    if rate is not None and rate < LEAST_RATE_RPS:
        raise InvalidInput("request_rate_rps", rate, f"a rate of at least {LEAST_RATE_RPS:f} per second")
    return rate


def dataset_of(row: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Find the dataset that a row names, with the mean lengths known of it; None when it names none.

    Parameters
    ----------
    row : mapping
        Columns of a serving benchmark row.

    Returns
    -------
    mapping or None
        A line of `accuracy/data/dataset_lengths.csv`.
    """
    for column in ("notes", "model", "source"):
        text = text_of(row, column).lower()
        for line in read_table(DATASETS):
            if line["keyword"] in text or line["keyword"] in re.sub(r"[ _-]", "", text):
                return line
    return None


def lengths_of(row: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Length fields of the scenario: fixed, uniform in a range, or exponential and cut, as the clients drew them.

    Parameters
    ----------
    row : mapping
        Columns of a serving benchmark row; isl and osl are means. [tokens]
    said : mapping
        What its notes say besides: drawn, answer_limit [tokens], decode_only.

    Returns
    -------
    dict
        Field of the Scenario to value.

    Raises
    ------
    InvalidInput
        When a length is missing and the row names no dataset whose lengths are known.
    """
    if said.get("decode_only"):
        return {"lengths": "constant", "prompt_mean_tokens": 1.0, "output_mean_tokens": number_of(row, "osl") or 1.0}
    isl, osl = number_of(row, "isl"), number_of(row, "osl")
    if isl is None or osl is None:
        known = dataset_of(row)
        if known is None:
            raise InvalidInput(
                "isl and osl", "", "a prompt and an output length, or a dataset of known lengths in the notes"
            )
        isl, osl = isl or float(known["prompt_tokens"]), osl or float(known["output_tokens"])
        return _exponential(isl, osl, float(known["max_prompt_tokens"]), float(known["max_output_tokens"]))
    isl, osl = max(1.0, isl), max(1.0, osl)
    drawn, limit = said.get("drawn"), said.get("answer_limit", 0)
    if osl < limit:  # answers that end before their limit: their lengths vary, the prompts' do not
        return _exponential(isl, osl, isl, limit)
    if drawn is None:
        return {"lengths": "constant", "prompt_mean_tokens": isl, "output_mean_tokens": osl}
    if drawn == "exponential":
        return _exponential(isl, osl, CUT_AT_MEANS * isl, CUT_AT_MEANS * osl)
    prompt, _, output = drawn.partition(", ")
    return _uniform("prompt", isl, prompt) | _uniform("output", osl, output or prompt) | {"lengths": "uniform"}


def _uniform(side: str, published: float, drawn: str) -> dict[str, float]:
    """Mean [tokens] and spread ÷ mean of lengths drawn in "LOW to HIGH" of the published one."""
    low, high = map(float, drawn.split(" to "))
    mean = max(1.0, published * (low + high) / 2)
    return {f"{side}_mean_tokens": mean, f"{side}_spread": (high - low) / (low + high)}


def drawn_as_published(row: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, float]:
    """Mean lengths and a rate with which the drawn requests are as long and as many a second as those that ran.

    Ten drawn lengths may differ from their law by a quarter, and end-to-end times with them; 500 drawn arrivals from
    their rate by a tenth. A published length that is not the mean of its law, such as the upper end of a range, says
    nothing of the sample.

    Parameters
    ----------
    row : mapping
        Columns of a serving benchmark row.
    fields : mapping
        Fields of the Scenario, arrivals [1/s] and lengths [tokens] among them.

    Returns
    -------
    dict
        Field of the Scenario to value.
    """
    out: dict[str, float] = {}
    for side, column in COLUMN_OF.items():
        published, name = number_of(row, column), f"{side}_mean_tokens"
        if fields["lengths"] == "constant" or published is None or not _is_mean(fields, side, published):
            continue
        out[name] = fields[name]
        for _ in range(CORRECTIONS):
            requests = draw(Scenario(**{**fields, **out}))
            drawn = requests.prompt_tokens if side == "prompt" else requests.output_tokens
            out[name] = max(1.0, out[name] * published / float(drawn.mean()))
    if fields["arrivals"] == "poisson":
        arrivals = draw(Scenario(**fields)).arrival_s
        out["rate_rps"] = fields["rate_rps"] ** 2 * float(arrivals[-1]) / len(arrivals)
    return out


def _is_mean(fields: Mapping[str, Any], side: str, published: float) -> bool:
    """Whether lengths vary about the published one as their mean, which their cut lowers."""
    mean, cut = float(fields[f"{side}_mean_tokens"]), fields.get(CUT_BY[side]) or math.inf
    if fields["lengths"] == "exponential":
        mean *= -math.expm1(-cut / mean)
    return bool(published < cut - 1 and math.isclose(mean, published, rel_tol=MEAN_SLACK))


def _exponential(isl: float, osl: float, longest_prompt: float, longest_output: float) -> dict[str, Any]:
    return {
        "lengths": "exponential",
        "prompt_mean_tokens": _mean_before_cut(isl, longest_prompt),
        "output_mean_tokens": _mean_before_cut(osl, longest_output),
        "max_prompt_tokens": max(1, round(longest_prompt)),
        "output_limit_tokens": max(1, round(longest_output)),
    }


def _mean_before_cut(mean: float, longest: float) -> float:
    """Mean of the exponential law whose draws, cut at `longest`, have the mean given. [tokens]

    E[min(X, c)] = m (1 - exp(-c / m)), solved for m by bisection.
    """
    low, high = mean, 1e7
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if middle * -math.expm1(-longest / middle) < mean else (low, middle)
    return max(1.0, high)
