"""How every page looks on a desk and on a phone: nothing cut, nothing on top of something else, no errors."""

from pathlib import Path

import pytest

from tests.dashboard.conftest import CHROMIUM, PAGES, serious

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
IDLE = '[data-testid="stApp"][data-test-script-state="notRunning"]'
TEXTS = (Path(__file__).parent / "texts.js").read_text()
WAIT_MS = 180_000  # the first ever run compiles the simulator
SETTLE_MS = 1_500  # charts are drawn after the script has run, and again after a change of width
WIDTHS = ((1280, "light"), (390, "dark"))


def faults_of(page, name):
    """What is wrong with one page at both widths; it is loaded once."""
    page.set_viewport_size({"width": WIDTHS[0][0], "height": 900})
    page.emulate_media(color_scheme=WIDTHS[0][1])
    page.wait_for_selector('[data-testid="stHeading"] h3', timeout=WAIT_MS)
    page.wait_for_selector(IDLE, timeout=WAIT_MS)
    found = []
    for width, theme in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=theme)
        page.wait_for_timeout(SETTLE_MS)
        page.wait_for_selector(IDLE, timeout=WAIT_MS)
        found += [f"{name} at {width}: {fault}" for fault in page.evaluate(TEXTS)]
    return found


def test_nothing_is_cut_and_nothing_overlaps(server, browser):
    page = browser.new_context().new_page()
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(f"{page.url}: {error}"))
    page.on("console", lambda said: found.append(f"{page.url}: {said.text}") if serious(said) else None)
    for name in PAGES:
        # One GPU to choose from: else what its chart names depends on how far the search has come.
        page.goto(f"{server}/{'' if name == 'plan' else name}?mine=L40S")
        found += faults_of(page, name)
    page.context.close()
    assert not found


def test_a_cut_text_an_overlap_and_a_wide_page_are_found(browser):
    # A check of looks that finds nothing where something is wrong would pass for ever.
    page = browser.new_context(viewport={"width": 390, "height": 900}).new_page()
    page.set_content(
        """<div data-testid="stMain">
        <p style="width:40px;overflow:hidden;white-space:nowrap">a sentence that is cut</p>
        <p style="position:absolute;top:200px">one text</p><p style="position:absolute;top:205px">another text</p>
        <div style="width:900px;height:1px"></div></div>"""
    )
    found = page.evaluate(TEXTS)
    page.context.close()
    assert [fault.partition(":")[0] for fault in found] == ["cut", "overlap", "sideways scroll"]
