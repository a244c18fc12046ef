"""What a published serving row ran, as a Scenario: the inputs with which a user would plan the same run.

A row names some settings in its columns and others in its notes (`accuracy/data/serving_patterns.csv` says how), and
the benchmark's own scripts publish more (`accuracy/data/harness_settings.csv`). What nobody published stays at the
engine's default. Nothing that was measured is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.accuracy.cells import count_of, number_of, text_of
from planner.accuracy.harness import acceptance_of, harness_settings, trtllm_bench_batch
from planner.accuracy.names import find_engine_preset, find_gpu, find_model, scheme_named
from planner.accuracy.row_reader import read_fields
from planner.accuracy.serving_traffic import arrivals_of, drawn_as_published, lengths_of
from planner.catalog import get_engine, get_model, version_at
from planner.errors import InvalidInput
from planner.inputs import NEWEST, release_of
from planner.scenario import Scenario, fields_by_name

SETTINGS = "accuracy/data/serving_patterns.csv"
#: what the notes say besides fields of the Scenario, and its kind
FACTS = {
    "refusal": "text",
    "attention_dp": "text",
    "moe_tp": "count",
    "by_layers": "flag",
    "static_batch": "flag",
    "users_per_replica": "count",
    "decode_only": "flag",
    "drawn": "text",
    "answer_limit": "count",
    "repeated_prompt": "flag",
    "drafting": "flag",
    "tokens_per_step": "number",
}
#: how benchmark clients run and report: answers of the exact length, every request counted
CLIENT = {"exact_output_limit": True, "measured_requests": "all", "target_quantile": 0.5}
LENGTH_SLACK_TOKENS = 16  # of the context beyond the longest request, where a row states no context


class RowSkipped(ValueError):
    """A row that cannot be planned; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A published run: the scenario that a user would enter for it, and what its table calls throughput.

    `decode_only`: tokens per second count from each first token on (llama-bench tg and the like).
    """

    scenario: Scenario
    decode_only: bool = False


def read_run(row: Mapping[str, Any]) -> MeasuredRun:
    """Read one published row, with requests as long and as often as those that ran.

    Parameters
    ----------
    row : mapping
        Columns of a serving benchmark row, as text or numbers.

    Returns
    -------
    MeasuredRun
        The run as a scenario.

    Raises
    ------
    RowSkipped
        When the shape of the model or the GPU is in no catalog, or the row lacks its workload.
    InvalidInput
        When a cell holds a number that no run can have, or the settings are not valid together.
    """
    fields, said = _read(row)
    longest = get_model(fields["model"]).longest_context
    fields |= drawn_as_published(row, {"max_model_len": longest} | fields)
    return MeasuredRun(scenario=_built(fields, said), decode_only=bool(said.get("decode_only")))


def read_planned(row: Mapping[str, Any]) -> Scenario:
    """Read a row that is to be planned, not compared with what one run drew: its traffic is as stated.

    Parameters, and errors raised, are those of `read_run`.
    """
    return _built(*_read(row))


def _read(row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of the Scenario as the row states them, and all that its settings and its harness say."""
    model, gpu = _known("shape for", "model", row, find_model), _known("GPU", "gpu", row, find_gpu)
    engine = find_engine_preset(text_of(row, "engine"))
    family = get_engine(engine).family
    cells = {str(name): text_of(row, name) for name in row} | {"catalog": model}
    sizes = (int(number_of(row, name) or 0) for name in ("isl", "osl", "concurrency"))
    said = harness_settings(cells, family, *sizes) | read_fields(cells, SETTINGS, FACTS)
    if "refusal" in said:
        raise RowSkipped(said["refusal"])
    fields = {
        **CLIENT,
        "title": text_of(row, "id")[:120],
        "model": model,
        "gpu": gpu,
        "engine": engine,
        "engine_version": _version(row, family),
        "weight_dtype": scheme_named(cells.get("weight_dtype", ""), cells["model"]) or "bf16",
        **{name: value for name, value in said.items() if name in fields_by_name()},
        **_parallelism(row, said, is_moe=get_model(model).is_moe),
        **arrivals_of(row, said),
        **lengths_of(row, said),
    }
    fields |= _drafting(said)
    if engine == "llama.cpp" and fields.get("concurrent_users", 1) > 1:
        # each slot is a setting (-np): who measures N streams starts N, or states how many
        fields = {"max_num_seqs": fields["concurrent_users"]} | fields
    if said.get("repeated_prompt"):
        fields["shared_prefix_tokens"] = round(fields["prompt_mean_tokens"])
    return fields, said


def _built(fields: dict[str, Any], said: Mapping[str, Any]) -> Scenario:
    scenario = Scenario(**{"max_model_len": _context(fields, fields["model"])} | fields)
    if said.get("tuned_batch"):
        batch, budget = trtllm_bench_batch(scenario)
        scenario = scenario.replace(
            max_num_seqs=scenario.max_num_seqs or batch,
            max_num_batched_tokens=scenario.max_num_batched_tokens or budget,
        )
    return scenario


def _known(what: str, column: str, row: Mapping[str, Any], find: Callable[[str], str | None]) -> str:
    published = text_of(row, column)
    found = find(published)
    if found is None:
        raise RowSkipped(f"the catalog has no {what} {published or '(not stated)'}")
    return found


def _version(row: Mapping[str, Any], family: str) -> str:
    """Release that ran: as the row says, else the one that was current at its date, else the newest."""
    stated = release_of(text_of(row, "engine_version"))
    if stated != NEWEST:
        return ".".join(map(str, stated))
    date = re.search(r"20\d\d-\d\d", text_of(row, "date"))
    return version_at(family, date.group(0)) if date else ""


def _parallelism(row: Mapping[str, Any], said: Mapping[str, Any], *, is_moe: bool) -> dict[str, Any]:
    """Widths of each kind of parallelism from the row's columns and what its notes say."""
    used = said.get("gpus_used", 0)
    gpus = used or count_of(row, "n_gpus")
    tp = used or count_of(row, "tp") or gpus or 1
    pp = count_of(row, "pp") or 1
    ep = int(number_of(row, "ep") or 1)
    if said.get("by_layers"):
        tp, pp = 1, tp * pp
    wide = said.get("attention_dp", "1")
    split = 1 if used else said.get("moe_tp", 1) * ep
    if is_moe and wide == "1" and "moe_tp" in said and split > tp:
        # experts spread wider than attention: the rest of the width is attention data parallelism
        attention_dp = split // tp
        gpus = None if gpus and gpus < split else gpus  # such rows may count the GPUs of one attention rank
    elif wide == "ep":
        attention_dp, tp = ep, 1
    elif wide == "tp":
        attention_dp, tp = tp, 1
    else:
        attention_dp = int(wide)
        tp = max(1, tp // attention_dp)
    width = tp * pp * attention_dp
    if gpus is not None and gpus % width:
        split = f"TP {tp} × PP {pp} × attention DP {attention_dp}"
        raise InvalidInput("n_gpus", gpus, f"a multiple of {width}, the GPUs of one replica ({split})")
    return {
        "tensor_parallel_size": tp,
        "pipeline_parallel_size": pp,
        "attention_data_parallel_size": attention_dp,
        "expert_parallel": is_moe and (ep > 1 or attention_dp > 1 or said.get("expert_parallel", False)),
        "num_replicas": (gpus or width) // width,
    }


def _drafting(said: Mapping[str, Any]) -> dict[str, Any]:
    """Drafts per step and the chance that one is accepted, as published; unknown, the form's own default holds."""
    drafts, gained = int(said.get("num_speculative_tokens", 0)), float(said.get("tokens_per_step", 0.0))
    if not drafts and not said.get("drafting"):
        return {}
    if not drafts:
        raise RowSkipped("drafting on, but it is not stated how many tokens are drafted")
    fields: dict[str, Any] = {"num_speculative_tokens": drafts}
    return fields | ({"speculative_acceptance": acceptance_of(drafts, gained)} if gained else {})


def _context(fields: Mapping[str, Any], model: str) -> int:
    """Context of a run that states none: its longest request, within the model's limit. [tokens]"""
    longest = 0.0
    for side, cut in (("prompt", "max_prompt_tokens"), ("output", "output_limit_tokens")):
        spread = fields.get(f"{side}_spread", 0.0) if fields["lengths"] == "uniform" else 0.0
        longest += fields.get(cut) or fields[f"{side}_mean_tokens"] * (1 + spread)
    return max(16, min(math.ceil(longest) + LENGTH_SLACK_TOKENS, get_model(model).longest_context))
