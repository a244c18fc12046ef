"""Rows of kernel step times."""

import pytest

from planner.accuracy.steps import phase_of, work_of
from planner.errors import InvalidInput
from tests.accuracy.published_rows import STEP


def test_phases_are_read_or_told_by_the_lengths():
    assert phase_of({"phase": "Prefill"}) == "prefill"
    assert phase_of({"isl": "1024", "ctx": "0"}) == "prefill"
    assert phase_of({"isl": "1024", "ctx": "1024"}) == "decode"
    with pytest.raises(InvalidInput, match="phase"):
        phase_of({"phase": "foo"})
    with pytest.raises(InvalidInput, match="phase"):
        phase_of({})


def test_work_of_a_step():
    work = work_of(STEP)
    assert (work.num_decodes, work.kv_tokens, work.chunks) == (4, 4096, ())
    prompts = work_of(STEP | {"phase": "prefill"})
    assert (prompts.num_decodes, [chunk.num_tokens for chunk in prompts.chunks]) == (0, [1024] * 4)
