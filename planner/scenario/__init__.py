"""Everything that a user can set, in one frozen `Scenario`, with its link and JSON form.

In: values from a form, a link or a notebook. Out: a valid `Scenario` that knows its model, GPU, engine and traffic.
"""

from planner.scenario.derived import MOST_RPS
from planner.scenario.documented import differing_fields, field_rows
from planner.scenario.fields import CONFIG, CUSTOM, OPEN_LOOP_KINDS, fields_by_name, sought, unsimulated_names
from planner.scenario.fingerprint import MEMORY_PARTS, differing, fingerprint, load_in
from planner.scenario.link import (
    COMPARED,
    NOTE,
    SEEN,
    VIEWED,
    Decoded,
    compared,
    from_json,
    from_params,
    from_query,
    is_address,
    is_compared,
    is_plan_link,
    joined,
    longest_context,
    to_json,
    to_params,
    to_query,
)
from planner.scenario.measured import CALIBRATION, ERRORS, PRINTED, SCALES
from planner.scenario.messages import message
from planner.scenario.own_gpus import own_gpus
from planner.scenario.presets import capacity_fraction, for_use, preset, preset_names, uses
from planner.scenario.quantiles import LEVELS as LENGTH_LEVELS
from planner.scenario.quantiles import quantiles_text
from planner.scenario.scenario import Scenario
from planner.scenario.settings import MAX_CONFIG_TEXT
from planner.scenario.targets import TARGETS, Target

__all__ = [
    "CALIBRATION",
    "COMPARED",
    "CONFIG",
    "CUSTOM",
    "ERRORS",
    "LENGTH_LEVELS",
    "MAX_CONFIG_TEXT",
    "MEMORY_PARTS",
    "MOST_RPS",
    "NOTE",
    "OPEN_LOOP_KINDS",
    "PRINTED",
    "SCALES",
    "SEEN",
    "TARGETS",
    "VIEWED",
    "Decoded",
    "Scenario",
    "Target",
    "capacity_fraction",
    "compared",
    "differing",
    "differing_fields",
    "field_rows",
    "fields_by_name",
    "fingerprint",
    "for_use",
    "from_json",
    "from_params",
    "from_query",
    "is_address",
    "is_compared",
    "is_plan_link",
    "joined",
    "load_in",
    "longest_context",
    "message",
    "own_gpus",
    "preset",
    "preset_names",
    "quantiles_text",
    "sought",
    "to_json",
    "to_params",
    "to_query",
    "unsimulated_names",
    "uses",
]
