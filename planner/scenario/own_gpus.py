"""The GPUs that a user has, read from one line of text."""

from __future__ import annotations

import re

from planner.catalog import get_gpu
from planner.errors import InvalidInput

_COUNTED = re.compile(r"^(?:(?P<first>\d+)\s*[x×]\s*)?(?P<name>.+?)(?:\s*:\s*(?P<last>\d+))?$", re.IGNORECASE)
_VALID = "GPUs of the catalog with how many you have, such as H100 SXM:8, L40S:4"


def own_gpus(text: str) -> dict[str, int | None]:
    """Names and numbers of the GPUs in a line such as "H100 SXM:8, 4 x L40S, A100".

    Parameters
    ----------
    text : str
        Names as `get_gpu` takes them, separated by commas; each with its number behind a colon or in front of an x.

    Returns
    -------
    dict of str to int or None
        Catalog name to number of GPUs; None where no number is given. Empty for an empty text.

    Raises
    ------
    InvalidInput
        When a GPU is not in the catalog, or its number is 0.
    """
    found: dict[str, int | None] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _COUNTED.match(part)
        number = (match["first"] or match["last"]) if match else None
        try:
            name = get_gpu(match["name"] if match else part).name
        except InvalidInput as error:
            raise InvalidInput("my_gpus", part, error.valid) from error
        if number is not None and int(number) == 0:
            raise InvalidInput("my_gpus", part, _VALID)
        found[name] = int(number) if number is not None else None
    return found
