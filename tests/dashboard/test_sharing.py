"""The link that carries a scenario."""

from urllib.parse import parse_qs, parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.dashboard.sharing import link
from planner.dashboard.urlstate import OTHER
from planner.scenario.link import VERSION, from_query, to_query
from planner.scenario.scenario import Scenario

from .conftest import clean


def test_link_keeps_host_and_page():
    found = link(Scenario(users=7), "https://plan.example.com/base/memory?v=1&u=9#x")
    assert found == "https://plan.example.com/base/memory?v=2&u=7"
    assert link(Scenario(), None) == "?v=2"


def test_the_other_plan_travels_beside_this_one():
    other = to_query(Scenario(users=9))
    found = link(Scenario(users=7), None, other)
    assert from_query(found).scenario == Scenario(users=7)
    assert parse_qs(found.removeprefix("?"))[OTHER] == [other]
    assert link(Scenario(users=7), None) == f"?{to_query(Scenario(users=7))}"


@given(st.text(max_size=40))
def test_no_address_breaks_the_link(address):
    assert from_query(link(Scenario(users=7), address)).scenario == Scenario(users=7)


@pytest.mark.parametrize("address", ["http://[", "javascript:alert(1)", "://", "https://x"])
def test_odd_addresses(address):
    found = link(Scenario(users=7), address)
    assert from_query(found).scenario == Scenario(users=7)


def test_the_shared_link_tells_its_day_and_note_and_opens_without_a_remark(open_app):
    app = clean(open_app({"v": str(VERSION), "nr": "300", "note": "for the *board*"}, opened=("share",)))
    assert any("for the" in caption.value and "*board*" not in caption.value for caption in app.caption)
    shared = next(block.value for block in app.code if "was=" in block.value)
    again = clean(open_app(dict(parse_qsl(shared.split("?", 1)[1]))))
    assert not again.warning and not [info for info in again.info if "link was made" in info.value]
    assert "was" not in dict(again.query_params) and "note" in dict(again.query_params)


def test_a_link_from_other_days_says_what_has_changed(open_app):
    app = clean(open_app({"v": str(VERSION), "nr": "300", "was": "2025-01-01~9~1~6570~0.1~0.01"}))
    (said,) = [info.value for info in app.info if "link was made" in info.value]
    assert "GPUs 9, now" in said


def test_every_page_has_one_first_heading(open_app):
    app = open_app({"v": str(VERSION), "nr": "300"}, "memory")
    pages = [item.proto.body for item in app.get("html") if "<h1" in item.proto.body]
    assert len(pages) == 1 and ">Memory<" in pages[0]
