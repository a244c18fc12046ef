"""Engine versions: what a published version says, as numbers that compare."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from planner.errors import InvalidInput

NEWEST_PATCH = 99  # of a version that names no patch
COMMITS_PER_RELEASE = 500  # vLLM's release notes of v0.14 to v0.21 name 335 to 752 commits each
_FIRST_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*(?:[.\-+]?[a-z0-9]+)*", re.IGNORECASE)


class Release(NamedTuple):
    """A version as numbers: later ones are larger, also against shorter tuples such as (0, 22)."""

    major: int
    minor: int
    patch: int


NEWEST = Release(999, 0, 0)  # what no version, or a build without tags, stands for


@lru_cache(maxsize=1024)
def release_of(version: str) -> Release:
    """Read an engine's version as it prints it.

    Parameters
    ----------
    version : str
        Such as "0.33.0", "v0.5.4.post2", "0.30" or "0.26.1rc1.dev608"; "" is the newest.

    Returns
    -------
    Release
        A version without a patch is the last of its minor line. A build between two releases counts as the
        release whose changes it mostly holds: one minor version for every `COMMITS_PER_RELEASE` commits since
        the release that it is named after, rounded. "0.1.dev…", which a build without tags prints, is the newest.
    """
    found = _FIRST_VERSION.search(version)
    if found is None or "0.1.dev" in version:
        return NEWEST
    numbers = [int(part) for part in re.findall(r"\d+", re.match(r"[\d.]+", found[0])[0])]  # type: ignore[index]
    commits = re.search(r"dev(\d+)", found[0])
    patch = numbers[2] if len(numbers) > 2 else NEWEST_PATCH
    if commits and patch:
        return Release(numbers[0], numbers[1] + round(int(commits[1]) / COMMITS_PER_RELEASE), patch)
    return Release(numbers[0], numbers[1], patch)


def first_of(line: str) -> tuple[int, ...]:
    """The first release of a line of versions, as numbers that compare with `release_of`.

    Parameters
    ----------
    line : str
        Such as "0.18" of a data file, from which on a rule holds; "" comes before every release.
    """
    return tuple(int(part) for part in line.split(".") if part)


def check_version(field: str, version: str) -> None:
    """Refuse a text that is no version.

    Raises
    ------
    InvalidInput
        Names the field.
    """
    try:
        Version(version)
    except InvalidVersion as error:
        raise InvalidInput(field, version, "a version such as 0.30 or 0.30.1, or nothing for the newest") from error
