"""The four policies on identical requests."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from planner import charts
from planner.answer.planning import plan
from planner.charts.policies import cost, in_sentence, kv_use, slots, throughput, throughput_finding, timeline, waits
from planner.scenario.scenario import Scenario
from tests.charts.cases import traces


@pytest.fixture(scope="module")
def done():
    return plan(Scenario(num_requests=300))


def test_policy_charts_cover_the_four_policies(done):
    for make in (charts.policy_throughput, charts.policy_kv_use, charts.policy_waits, charts.policy_cost):
        assert len(make(done.policies).figure["data"][0]["y"]) == 4
    assert charts.policy_timeline(done.policies, "running", "t", "sequences") is not None


def outcome(name, title, tokens, price, written=0.2, used=0.5, p95=4.0):
    waited = SimpleNamespace(p50=p95 / 4, p95=p95)
    result = SimpleNamespace(
        mean_running=3.0, mean_kv_written_fraction=written, mean_kv_used_fraction=used, timeline=None
    )
    return SimpleNamespace(
        name=name,
        title=title,
        capacity_tokens_per_s=tokens,
        usd_per_million_tokens_at_capacity=price,
        metrics=SimpleNamespace(e2e_s=waited),
        result=result,
    )


TWO = (outcome("one-at-a-time", "One at a time", 100.0, 30.0, p95=8.0), outcome("paged", "Paged KV", 300.0, 10.0))


def test_titles_inside_a_sentence_keep_abbreviations():
    assert in_sentence("One at a time") == "one at a time"
    assert in_sentence("KV cache") == "KV cache"


def test_how_far_apart_they_are():
    assert "3×" in throughput_finding(TWO)
    assert "3×" in cost(TWO).title
    assert list(throughput(TWO).figure["data"][0]["x"]) == [100.0, 300.0]


def test_a_policy_that_serves_nothing_divides_by_nothing():
    none = (outcome("static", "Static", 0.0, math.inf, p95=math.nan), TWO[1])
    assert "finishes no request" in throughput_finding(none)
    assert list(cost(none).figure["data"][0]["x"]) == [0.0, 10.0]
    assert waits(none).figure["data"]
    alone = (outcome("static", "Static", 0.0, math.inf, p95=math.nan),)
    assert "No request" in waits(alone).title


def test_used_and_reserved_sum_to_what_is_held():
    drawn = traces(kv_use(TWO))
    assert drawn["KV used"]["x"][0] + drawn["KV reserved"]["x"][0] == pytest.approx(0.5)
    assert "30 %" in kv_use(TWO).title


def test_running_sequences_and_the_shortest_wait():
    assert list(slots(TWO, 64).figure["data"][0]["x"]) == [3.0, 3.0]
    assert waits(TWO).title.startswith("Paged KV")
    assert "4 s" in waits(TWO).title
    assert timeline(TWO, "running", "t", "sequences") is None  # nothing was sampled


def sampled(name, end_s):
    made = outcome(name, name, 1.0, 1.0)
    time_s = np.linspace(0.0, end_s, 11)
    made.result.timeline = SimpleNamespace(time_s=time_s, running=np.arange(11))
    return made


# The last policy is done after 2 s; another goes on to 10 s, and is cut at 1.3 times that.
def test_a_timeline_ends_a_while_after_the_last_policy():
    chart = timeline((sampled("slow", 10.0), sampled("paged", 2.0)), "running", "t", "sequences")
    assert chart.figure["layout"]["xaxis"]["range"] == [0, pytest.approx(2.6)]
    slow, paged = chart.figure["data"]
    assert max(slow["x"]) <= 2.6 and max(paged["x"]) == 2.0
    assert "10 s" in chart.subtitle
    alike = timeline((sampled("slow", 2.5), sampled("paged", 2.0)), "running", "t", "sequences")
    assert alike.figure["layout"]["xaxis"]["range"] == [0, 2.5]
    assert "2.5 s" not in alike.subtitle
