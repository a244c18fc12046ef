"""The link that carries a scenario."""

from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.dashboard.sharing import link
from planner.dashboard.urlstate import OTHER
from planner.scenario.link import from_query, to_query
from planner.scenario.scenario import Scenario


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
