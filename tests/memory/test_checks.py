"""Divisions that an engine refuses."""

import pytest

from tests.memory.cases import QWEN7, plan


@pytest.mark.parametrize(
    ("model", "tp", "words"),
    [
        (QWEN7, 8, "Total number of attention heads (28) must be divisible by tensor parallel size (8)."),
        ("Qwen/Qwen3-235B-A22B-FP8", 8, "not divisible by weight quantization block_n = 128"),
        ("Qwen/Qwen3-14B", 3, "Total number of attention heads (40)"),
    ],
)
def test_divisions_are_refused_in_the_engines_words(model: str, tp: int, words: str) -> None:
    made = plan(model, tp=tp)
    assert not made.starts
    assert words in made.refusal
