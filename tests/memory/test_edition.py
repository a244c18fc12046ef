"""Which release a version string belongs to."""

import pytest

from planner.inputs.engine import EngineSettings


@pytest.mark.parametrize(
    ("version", "number"),
    [("0.20.1rc1.dev16+g7a1eb8ac2", (0, 20)), ("0.26.1rc1.dev608", (0, 27)), ("0.11.0rc2.dev98", (0, 11))],
)
def test_builds_between_releases_hold_what_came_since(version: str, number: tuple[int, int]) -> None:
    from planner.memory.edition import edition_of

    assert edition_of(EngineSettings(version=version)).number == number
