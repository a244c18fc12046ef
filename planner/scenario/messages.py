"""Errors in the words of the form: the field by its label, its value, what would be valid."""

from __future__ import annotations

from planner.errors import InvalidInput, PlannerError
from planner.scenario.fields import fields_by_name

MOST_OF_FILE = 60  # characters of a file that an error repeats


def message(error: PlannerError) -> str:
    """An error as one sentence that names its field by the form's label and its own name.

    Parameters
    ----------
    error : PlannerError
        An InvalidInput whose field is a setting gets the label; any other error reads as it is.

    Returns
    -------
    str
        For example "Context length (max_model_len) = 5 is not valid: expected …".
    """
    name = str(getattr(error, "field", ""))
    declared = fields_by_name().get(name)
    if name == "file" and isinstance(error, InvalidInput):
        return f"Headroom cannot use this file ({str(error.value)[:MOST_OF_FILE]}): expected {error.valid}."
    if declared is None:
        return str(error)
    return f"{declared.metadata['label']} ({name}){str(error).removeprefix(name)}"
