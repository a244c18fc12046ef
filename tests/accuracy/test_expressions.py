"""Formulas of benchmark scripts."""

import pytest

from planner.accuracy.expressions import parsed, value_of

NAMES = frozenset({"isl", "osl", "concurrency", "tp"})


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("2*isl", {"isl": 1024}, 2048),
        ("(isl + concurrency + 127) // 64 * 64", {"isl": 1024, "concurrency": 4}, 1152),
        ("max(8192, isl)", {"isl": 1024}, 8192),
        ("30 if concurrency >= 16 else 10", {"concurrency": 16}, 30),
        ("512 if isl == osl == 1024 else 256", {"isl": 1024, "osl": 8192}, 256),
        ("0.7 if osl == 8192 and concurrency >= 256 else 0.8", {"osl": 8192, "concurrency": 256}, 0.7),
        ("tp if concurrency > 255 or isl > 8000 else 1", {"tp": 8, "concurrency": 4, "isl": 8192}, 8),
        ("concurrency > 32 if tp == 4 else concurrency > 8", {"tp": 8, "concurrency": 16}, True),
    ],
)
def test_formulas_as_scripts_write_them(text, values, expected):
    tree = parsed(text, NAMES)
    assert tree is not None
    assert value_of(tree, values) == expected


@pytest.mark.parametrize("text", ["8192", "yes", "fp8", "0.9", "flashinfer_trtllm", "a b", "other + 1"])
def test_what_is_no_formula_stays_text(text):
    assert parsed(text, NAMES) is None


@pytest.mark.parametrize("text", ["isl ** 2", "isl.real", "[isl]", "-isl"])
def test_the_language_has_no_more_than_it_needs(text):
    tree = parsed(text, NAMES)
    assert tree is not None
    with pytest.raises(ValueError, match="cannot hold"):
        value_of(tree, {"isl": 1})
