"""The charts of the report: bars and lines stand where the figures are."""

import itertools
import math
import re
from xml.etree import ElementTree

import pytest

from planner.answer.report_figures import HERE, chain_chart, load_chart, memory_chart
from planner.units import GIB
from tests.answer.cases import planned

SVG = "{http://www.w3.org/2000/svg}"


def bars(text):
    return [
        (float(bar.get("x")), float(bar.get("width")), bar.get("fill"))
        for bar in ElementTree.fromstring(text).iter(f"{SVG}rect")
    ]


def test_parts_of_the_memory_follow_one_another_and_have_their_size():
    memory = planned().memory
    drawn = bars(memory_chart(planned()))
    for (x, width, _), (following, _, _) in itertools.pairwise(drawn):
        assert following == pytest.approx(x + width, abs=0.9)  # the thinnest bar is still drawn
    weights, pool = drawn[0], drawn[1]
    assert pool[1] / weights[1] == pytest.approx(memory.kv_pool_bytes / memory.weights_bytes, rel=0.01)
    assert f"{memory.weights_bytes / GIB:.1f} GiB" in memory_chart(planned())


def test_the_reasons_that_set_the_number_stand_out():
    done = planned(users=5000)
    drawn = bars(chain_chart(done))
    assert len(drawn) == len(done.chain)
    for (_, width, colour), link in zip(drawn, done.chain, strict=True):
        assert (colour == HERE) is (link.gpus >= done.num_gpus)
        assert width == pytest.approx(link.gpus / max(item.gpus for item in done.chain) * (340 - 92 - 62), abs=0.9)


def test_the_load_curve_marks_target_and_plan_and_holds_no_odd_numbers():
    text = load_chart(planned())
    ElementTree.fromstring(text)
    assert "target 1 s" in text and "planned: " in text
    assert not re.search(r"\b(nan|inf)\b", text)
    assert "target" not in load_chart(planned(ttft_target_s=None))
    assert load_chart(planned(model="meta-llama/Llama-3.3-70B-Instruct")) == ""


def test_a_reason_that_no_number_meets_is_said():
    done = planned(tpot_target_s=0.0005)
    assert any(math.isinf(link.gpus) for link in done.chain)
    assert "no number is enough" in chain_chart(done)
