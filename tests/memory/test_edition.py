"""Which release a version string belongs to."""

import pytest

from planner.catalog.engines import get_engine
from planner.inputs.engine import EngineSettings
from planner.inputs.engine_version import NEWEST
from planner.memory.edition import GRAPHS_IN_BUDGET, LEAN_SAMPLER, SYMMETRIC_MEMORY, UTILIZATION_092, edition_of
from planner.scenario.scenario import Scenario


@pytest.mark.parametrize(
    ("version", "number"),
    [("0.20.1rc1.dev16+g7a1eb8ac2", (0, 20)), ("0.26.1rc1.dev608", (0, 27)), ("0.11.0rc2.dev98", (0, 11))],
)
def test_builds_between_releases_hold_what_came_since(version: str, number: tuple[int, int]) -> None:
    assert edition_of(EngineSettings(version=version)).number == number


@pytest.mark.parametrize(
    ("version", "use_v1", "release", "is_v0"),
    [
        ("0.7.3", None, (0, 7, 3), True),  # V1 became the default with 0.8 (vLLM's release notes)
        ("0.7.3", True, (0, 7, 3), False),
        ("0.8.0", None, (0, 8, 0), False),
        ("0.8.5", False, (0, 8, 5), True),
        ("v0.11.2", None, (0, 11, 2), False),
    ],
)
def test_release_and_engine_of_a_version(
    version: str, use_v1: bool | None, release: tuple[int, int, int], is_v0: bool
) -> None:
    found = edition_of(EngineSettings(version=version, use_v1=use_v1))
    assert (found.release, found.is_v0) == (release, is_v0)


def test_without_a_version_it_is_the_newest() -> None:
    found = edition_of(EngineSettings(version=""))
    assert found.release == NEWEST
    assert found.since(NEWEST[:2]) and not found.is_v0


# Latents are cached since vLLM 0.7 and since Ollama runs llama.cpp; a log of Ollama 0.14 has every head.
@pytest.mark.parametrize(
    ("engine", "caches"),
    [
        (EngineSettings(version="0.6.6"), False),
        (EngineSettings(version="0.7.0"), True),
        (EngineSettings(version="0.7.0", latent_cache=False), False),
        (get_engine("ollama"), True),
        (get_engine("ollama", "0.14.3"), False),
        (get_engine("ollama", "0.32"), True),
        (get_engine("llama-server"), True),
        (Scenario(engine="llama-server", latent_cache="off").engine_settings, False),
        (EngineSettings(family="sglang"), True),
    ],
)
def test_who_caches_the_latent(engine: EngineSettings, caches: bool) -> None:
    assert edition_of(engine).caches_latent is caches


# First versions with a behaviour, by the pull request or log that the module names: before and from then on.
@pytest.mark.parametrize(
    ("version", "first"),
    [("0.16.0", LEAN_SAMPLER), ("0.17.0", SYMMETRIC_MEMORY), ("0.19.1", GRAPHS_IN_BUDGET), ("0.19.1", UTILIZATION_092)],
)
def test_a_behaviour_begins_with_its_release(version: str, first: tuple[int, int]) -> None:
    assert not edition_of(EngineSettings(version=version)).since(first)
    assert edition_of(EngineSettings(version=f"{first[0]}.{first[1]}.0")).since(first)
    assert first <= NEWEST[:2]
