"""The step timeline: what it draws, and that it says the same in words."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from planner.charts.steps import MOST_ROWS, slot_shares, step_finding, step_timeline, without_prompts
from planner.inputs.engine import Batching, KvReservation
from planner.simulation.seed_article import seed_lengths, seed_steps
from planner.simulation.step_trace import DECODE, HELD, PAUSED, PREFILL, record_steps
from tests.simulation.cases import UNIT, limits, make
from tests.simulation.test_step_trace import engine

SVG = "{http://www.w3.org/2000/svg}"


def traced(outputs=(3, 1, 2), batching=Batching.CONTINUOUS, **capacity):
    reservation = KvReservation.MODEL_LIMIT if batching is Batching.STATIC else KvReservation.PAGED
    requests = make([0] * len(outputs), [5] * len(outputs), list(outputs))
    return record_steps(requests, engine(batching, reservation), limits(**{"seqs": 2, "max_len": 20} | capacity), UNIT)


def drawn(picture, name):
    """Titles of the bars of one picture, with their places."""
    root = ElementTree.fromstring(getattr(picture, name))
    bars = [bar for bar in root.iter(f"{SVG}rect") if bar.find(f"{SVG}title") is not None]
    return {bar.find(f"{SVG}title").text: (float(bar.get("x")), float(bar.get("width"))) for bar in bars}


@pytest.mark.parametrize("name", ["wide", "narrow"])
def test_every_span_is_a_bar_and_says_what_it_is(name):
    bars = drawn(step_timeline(traced()), name)
    assert set(bars) == {
        "request 1: prompt of 5 tokens, step 1",
        "request 1: decodes, steps 2 to 3",
        "request 2: prompt of 5 tokens, step 1",
        "request 3: prompt of 5 tokens, step 2",
        "request 3: decodes, step 3",
    }
    left, wide = bars["request 1: prompt of 5 tokens, step 1"]
    assert bars["request 1: decodes, steps 2 to 3"][0] == pytest.approx(left + wide + 1, abs=0.11)
    assert bars["request 1: decodes, steps 2 to 3"][1] == pytest.approx(2 * wide + 1, abs=0.21)


def test_pictures_stand_alone():
    picture = step_timeline(traced())
    for text in (picture.wide, picture.narrow):
        root = ElementTree.fromstring(text)
        assert root.get("role") == "img" and root.get("aria-label") == picture.title
        names = [node.get("id") for node in root.iter() if node.get("id")]
        assert set(re.findall(r"url\(#([\w-]+)\)", text)) <= set(names)
        assert not re.search(r"\b(nan|inf)\b", text)
    own = re.findall(r'id="([\w-]+)"', picture.wide) + re.findall(r'id="([\w-]+)"', picture.narrow)
    assert len(set(own)) == len(own)  # both stand in one document


def test_figures_hold_until_the_next_row():
    picture = step_timeline(traced())
    assert picture.edges == [0, 0.33333, 0.66667, 1]
    # step, decodes, prompt tokens, waiting, blocks of one token: prompts of 5 and 5, then as in the tests of the trace
    assert [row[:4] for row in picture.figures] == [[0, 0, 10, 1], [1, 1, 5, 0], [2, 2, 0, 0]]
    assert picture.durations_ms == [1000, 1000, 1000]


def test_the_finding_names_what_is_special():
    assert "lose" in step_finding(traced((4, 4), blocks=12)) or "loses" in step_finding(traced((4, 4), blocks=12))
    # Slots of a batch of 3 and 1 tokens, then one of 2: five steps and three; held for two of the eight.
    static = traced(batching=Batching.STATIC)
    assert slot_shares(static)[HELD] == pytest.approx(2 / 8)
    assert step_finding(static) == "Finished answers hold the slots 25 % of the time, while 1 request waits"
    assert "wait" in step_finding(traced(seqs=1))
    assert "up to 2 at once" in step_finding(traced())


def test_the_article_ignores_prompts():
    trace = without_prompts(seed_steps("continuous, 8 slots", 30_000))
    assert {span.kind for span in trace.spans} == {DECODE}
    assert len(trace.spans) == len(seed_lengths())
    assert sorted(span.end - span.first for span in trace.spans) == sorted(seed_lengths())
    assert not trace.prefill_tokens.any() and (trace.decodes == trace.running).all()
    static = without_prompts(seed_steps("static batches of 8", 30_000))
    held = [span for span in static.spans if span.kind == HELD]
    assert sum(span.end - span.first for span in held) == 8 * len(static) - sum(seed_lengths())


def test_runs_on_one_axis():
    short = step_timeline(without_prompts(seed_steps("continuous, 8 slots", 8020)), by_time=False, axis_steps=8020)
    assert short.edges[-1] == pytest.approx(3319 / 8020, abs=1e-5)
    assert "all answered after 3,319 steps" in short.wide
    assert short.durations_ms == []


def test_many_slots_are_cut_and_said():
    many = traced([3] * 60, seqs=60, budget=2000)
    picture = step_timeline(many)
    assert f"the first {MOST_ROWS} of 60 slots" in picture.subtitle
    assert len(drawn(picture, "wide")) == 2 * MOST_ROWS


def test_decodes_that_stand_still_are_told():
    trace = traced()
    spans = tuple(span._replace(kind=PAUSED) if span.kind == PREFILL else span for span in trace.spans)
    import dataclasses

    assert "stand still" in step_finding(dataclasses.replace(trace, spans=spans, waiting=np.zeros(3, dtype=int)))
