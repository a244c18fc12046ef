"""Bands: fitted on made-up rows whose quantiles are known, and held against the rows of the Accuracy page."""

import math

import numpy as np
import pandas as pd
import pytest

from planner.accuracy import bands
from planner.accuracy.snapshot import BANDS, ROWS


def rows(ratios, *, quantity="tpot_ms_mean", evidence="measured", kind="dense", family="vllm", group="a"):
    table = pd.DataFrame({"measured": np.asarray(ratios, float), "left_out": 1.0})
    return table.assign(**{"quantity": quantity, "evidence": evidence, "class": kind, "family": family, "group": group})


EVEN = np.exp(np.linspace(-1, 1, 201))


def test_quantiles_are_those_of_the_rows():
    table = bands.fit_bands(rows(EVEN))
    line = table[(table["quantity"] == "tpot") & (table["class"] == "dense") & (table["engine"] == "vllm")].iloc[0]
    for level in bands.LEVELS:
        assert math.log(line[f"q{100 * level:g}"]) == pytest.approx(2 * level - 1, abs=0.011)
    # |predicted ÷ measured − 1| of the middle row of a uniform logarithm
    assert line["median_pct"] == pytest.approx(100 * np.median(np.abs(1 / EVEN - 1)))


def test_a_large_source_does_not_drown_the_others():
    table = pd.concat([rows([1.0] * 3000, group="large"), *(rows([2.0] * 30, group=name) for name in "abcd")])
    assert bands.weights_of(table["group"]).sum() == pytest.approx(math.sqrt(30 * 3000) + 4 * 30)
    line = bands.nearest(bands.fit_bands(table), "tpot", "measured", "dense", "vllm")
    assert line["q75"] == pytest.approx(2.0)  # 120 of a weight of 420 lie there; of the rows, 4 %


def test_tails_stretch_until_rows_of_other_sources_are_inside():
    # the rows of source b lie beyond those of a: the 90 % band of each must reach the other's
    table = pd.concat([rows(np.exp(np.linspace(-0.1, 0.1, 50)), group="a"), rows(np.exp([0.15] * 20), group="b")])
    near = table.assign(log=np.log(table["measured"]))
    assert bands.tail_stretch(near) > 1
    assert bands.tail_stretch(near[near["group"] == "a"]) == 1
    found = bands.stretched(np.log(np.linspace(0.5, 2, len(bands.LEVELS))), 2.0)
    plain = np.log(np.linspace(0.5, 2, len(bands.LEVELS)))
    inside = [bands.LEVELS.index(level) for level in (0.25, 0.5, 0.75)]
    assert found[inside] == pytest.approx(plain[inside])
    assert found[-1] - found[7] == pytest.approx(2 * (plain[-1] - plain[7]))


def test_farther_evidence_is_never_surer():
    far = rows(np.exp(np.linspace(-0.01, 0.01, 60)), evidence="architecture")
    table = bands.fit_bands(pd.concat([rows(EVEN), far]))
    line = bands.nearest(table, "tpot", "architecture", "dense", "vllm")
    assert math.log(line["q95"] / line["q5"]) == pytest.approx(1.8, abs=0.05)


def test_coverage_counts_rows_inside():
    table = rows(EVEN)
    found = bands.coverage(table, bands.fit_bands(table)).set_index(["evidence", "quantity"])
    assert found.loc[("measured", ""), "inside_50_pct"] == pytest.approx(50, abs=1)
    assert found.loc[("measured", "tpot"), "inside_90_pct"] == pytest.approx(90, abs=1)
    assert found.loc[("none", ""), "rows"] == 0


@pytest.fixture(scope="module")
def published():
    table = pd.read_csv(ROWS)
    return table[table["kind"] == "serving"].fillna({"family": "", "evidence": "", "group": ""})


def test_published_bands_hold_what_they_say(published):
    """Half of the left-out rows lie in the 50 % band and at least 87 % in the 90 % band, however near the evidence."""
    stored = pd.read_csv(BANDS, keep_default_na=False)
    found = bands.coverage(published, stored)
    whole = found[found["quantity"] == ""].set_index("evidence")
    assert (whole["rows"] > 100).all()
    assert whole["inside_50_pct"].between(45, 55).all(), whole
    assert (whole["inside_90_pct"] >= 87).all(), whole


def test_published_bands_are_those_of_the_published_rows(published):
    again, stored = bands.fit_bands(published), pd.read_csv(BANDS, keep_default_na=False)
    assert len(again) == len(stored)
    for name in ("q5", "q50", "q95"):
        assert again[name].to_numpy() == pytest.approx(stored[name].astype(float).to_numpy(), rel=0.01)
