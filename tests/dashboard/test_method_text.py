"""The texts of the Method page: markdown that holds, words that the program uses."""

import re

import pytest

from planner.dashboard import method_text
from planner.service.policies import LAB_POLICIES, POLICY_TITLES

TABLES = [method_text.VOCABULARY, method_text.FORMULAS]


@pytest.mark.parametrize("text", TABLES)
def test_tables_have_two_columns_throughout(text):
    rows = [line for line in text.strip().split("\n") if line]
    assert len(rows) > 5
    assert {len(line.strip("|").split("|")) for line in rows} == {2}
    names = [line.strip("|").split("|")[0].strip() for line in rows]
    assert len(set(names)) == len(names)


def test_every_policy_of_the_batching_lab_is_explained():
    titles = re.findall(r"^- \*\*(.+?)\*\*", method_text.POLICIES, re.M)
    assert titles == [POLICY_TITLES[name] for name in LAB_POLICIES]


def test_units_and_percentiles_of_the_pages_are_explained():
    for word in ("TTFT", "TPOT", "ITL", "E2E", "goodput", "p95", "replica", "GiB"):
        assert word in method_text.VOCABULARY


@pytest.mark.parametrize(
    "text", [method_text.WHAT_IT_DOES_NOT_KNOW, method_text.SOURCES, method_text.POLICIES, *TABLES]
)
def test_emphasis_is_closed(text):
    assert text.count("**") % 2 == 0


def test_the_count_of_fitted_numbers_is_that_of_the_model():
    said = method_text.fitted({"kernels": 1000, "overheads": 70, "served kernels": 30, "GPU classes": 40, "links": 12})
    assert "**1,152 numbers of the speed model were fitted**" in said
    assert "- 1,000 shares of bandwidth" in said
