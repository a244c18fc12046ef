"""Versions as engines print them, as numbers that compare."""

import pytest

from planner.errors import InvalidInput
from planner.inputs.engine import EngineSettings
from planner.inputs.engine_version import NEWEST, NEWEST_PATCH, check_version, release_of


@pytest.mark.parametrize(
    ("printed", "release"),
    [
        ("0.33.0", (0, 33, 0)),
        ("0.19.1", (0, 19, 1)),
        ("0.6", (0, 6, NEWEST_PATCH)),
        ("0.10.1.post1", (0, 10, 1)),
        ("v0.5.4.post2", (0, 5, 4)),
        ("1.2.0rc6.post3", (1, 2, 0)),
        ("0.19.0+cu129", (0, 19, 0)),
        # 608 commits after 0.26.1: more than one release of 500, less than one and a half
        ("0.26.1rc1.dev608+g1a2b3c4", (0, 27, 1)),
    ],
)
def test_versions_are_read_as_numbers(printed, release):
    assert release_of(printed) == release


@pytest.mark.parametrize("printed", ["", "nightly", "0.1.dev9876+gabc123"])
def test_no_version_and_builds_without_a_tag_are_the_newest(printed):
    assert release_of(printed) == NEWEST
    assert release_of(printed) > release_of("0.33.0")


def test_a_version_without_a_patch_is_the_last_of_its_line():
    assert release_of("0.30") > release_of("0.30.5")
    assert release_of("0.30") < release_of("0.31.0")
    assert release_of("0.30") >= (0, 30)


@pytest.mark.parametrize("text", ["latest", "0.30 or so", "<script>", "v"])
def test_a_text_that_is_no_version_is_refused(text):
    with pytest.raises(InvalidInput, match="version"):
        check_version("engine_version", text)


# VLLM_USE_V1 became 1 by default with 0.8.0 (March 2025); before it had to be set.
@pytest.mark.parametrize(
    ("version", "use_v1", "is_v0"),
    [("0.7.3", None, True), ("0.8.0", None, False), ("0.7.3", True, False), ("0.8.5", False, True), ("", None, False)],
)
def test_which_core_of_vllm_runs(version, use_v1, is_v0):
    assert EngineSettings(version=version, use_v1=use_v1).is_v0 is is_v0
    assert not EngineSettings(family="sglang", version=version, use_v1=use_v1).is_v0
