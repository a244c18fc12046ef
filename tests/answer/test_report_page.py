"""The report: what stands on its two pages, and that it needs nothing else."""

import dataclasses
import re
import shutil
from datetime import date
from html.parser import HTMLParser

import pytest

from planner.answer.report import TRACED
from planner.answer.report_page import MOST_INPUTS, change_lines, confidence, inputs, money_rows, plan_html, question
from planner.answer.search import Candidate
from planner.scenario.scenario import Scenario
from planner.units import format_usd
from tests.answer.cases import all_changes, planned

REFUSED = {"model": "meta-llama/Llama-3.3-70B-Instruct"}
CROWDED = {
    "title": "x" * 120,
    "arrivals": "once",
    "num_speculative_tokens": 3,
    "speculative_acceptance": 0.6,
    "num_lora_adapters": 8,
    "patience_s": 20.0,
    "timeout_s": 60.0,
    "occupied_gib": 2.0,
    "kv_offload_gib": 10.0,
    "shared_prefix_tokens": 500,
    "num_prefix_groups": 5,
    "ttft_target_s": 0.01,
    "e2e_target_s": 1.0,
    "itl_target_s": 0.01,
    "burst_cv": 3.0,
    "weight_dtype": "fp8",
    "spare_replicas": 2,
}
LINK = "https://plan.example.com/base/?v=1&u=7"
DAY = date(2026, 11, 30)
OTHER = Candidate(
    scenario=Scenario(gpu="L40S"), status="meets targets", num_gpus=3, usd_per_month=999.0, ttft_s=0.5, tpot_s=0.02
)


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text, self.links = set(), [], []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not {name for name, _ in attrs} & {"src", "onload"}
        self.links += [value for name, value in attrs if name == "href"]

    def handle_data(self, data):
        self.text.append(data)


def read(done, **more):
    page = Page()
    page.feed(plan_html(done, link=LINK, made=DAY, **more))
    return page, " ".join(page.text)


@pytest.mark.parametrize("changes", [{}, REFUSED, {"title": '<script>alert(1)</script> & "x"'}])
def test_the_page_needs_nothing_else_and_escapes_what_users_wrote(changes):
    done = planned(**changes)
    page, said = read(done)
    assert not page.tags & {"script", "img", "iframe", "link"}
    assert page.links == [LINK]
    assert (done.scenario.title or "Capacity plan") in said
    assert done.headline in said
    assert not re.search(r"\b(nan|inf)\b", said)


def test_both_pages_are_dated_and_name_the_link_with_its_host():
    _, said = read(planned())
    assert said.count("2026-11-30 · page") == 2
    assert LINK in said
    page = Page()
    page.feed(plan_html(planned(), made=DAY))
    assert page.links == []  # a query alone opens nothing


def test_question_verdict_confidence_money_and_sources_are_there():
    done = planned()
    _, said = read(done)
    assert "500 users" in question(done) and "TTFT 1 s" in question(done)
    assert question(done) in said and confidence(done) in said
    assert f"{done.bands['ttft'].rows:,} published results" in confidence(done)
    assert f"Verdict: it {done.verdict.text}." in said
    for text in (done.cost.price_source, done.gpu.spec_source[:60], done.model.source[:60], *done.reasons[:3]):
        assert text in said
    rows = {row[0]: row[1:] for row in money_rows(done)}
    assert rows["A year"][0] == format_usd(12 * done.cost.usd_per_month)
    # The bill at the lowest and highest offer: GPUs × price × hours.
    low = done.gpu.usd_per_hour_low * done.num_gpus * done.scenario.hours_per_month
    assert rows["A month at the lowest and highest published GPU price"][0].startswith(format_usd(low))


def test_a_replayed_trace_says_that_no_link_carries_it():
    done = planned()
    assert TRACED not in read(done)[1]
    assert TRACED in read(dataclasses.replace(done, is_traced=True))[1]


def test_inputs_are_those_that_were_changed_and_the_main_ones():
    found = dict(inputs(Scenario(users=800, weight_dtype="fp8")))
    assert found["Users"] == "800" and found["Weights"] == "fp8"
    assert found["KV cache"] == "as the checkpoint"
    assert "Think time (s)" not in found and "Seed" not in found
    many = inputs(Scenario(**CROWDED))
    assert len(many) == MOST_INPUTS
    assert many[-1][1].endswith("more, in the link")


def test_changes_that_do_nothing_share_a_line():
    done = planned()
    changes = all_changes(done.scenario)
    lines = change_lines(changes)
    assert sum("no change" in line for line in lines) <= 1
    shown = [line for line in lines if line in read(done, changes=changes)[1]]
    assert len(shown) == (len(lines) if len(lines) <= 4 else 3)


def test_alternatives_stand_in_a_table():
    _, said = read(planned(), alternatives=[OTHER] * 9)
    assert said.count("3 × L40S") == 4
    assert "the first 4 of 9" in said


def test_a_list_says_what_the_page_has_no_room_for():
    found = [dataclasses.replace(finding, text=f"finding {n}") for n in range(9) for finding in planned().findings[:1]]
    _, said = read(dataclasses.replace(planned(), findings=tuple(found)))
    assert [n for n in range(9) if f"finding {n}" in said] == [0, 1, 2]
    assert "and 6 more, behind the link" in said


def test_money_of_alternatives_stands_beside_them():
    _, said = read(planned(), alternatives=[OTHER] * 9)
    assert "999.00 USD" in said and "500 ms" in said


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_it_prints_on_two_pages(tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        for changes in ({}, REFUSED, CROWDED):
            done = planned(**changes)
            found = () if not done.fits else all_changes(done.scenario)
            for others in ((), (OTHER,) * 9):
                page.set_content(plan_html(done, link=LINK, changes=found, alternatives=others))
                pdf = page.pdf(prefer_css_page_size=True)
                assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 2, changes
        browser.close()
