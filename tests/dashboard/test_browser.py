"""A real browser: open the page, change the model, read a figure, copy the link, open it elsewhere, compare."""

import re

import pytest

from planner.dashboard.shell import FAULT
from tests.dashboard.conftest import CHROMIUM, serious

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
IDLE = '[data-testid="stApp"][data-test-script-state="notRunning"]'
WAIT_MS = 180_000  # the first ever run compiles the simulator


def open_page(browser, url, faults, path="/", **more):
    page = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | more)).new_page()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if serious(message) else None)
    page.on("request", lambda request: faults.append(request.url) if outside(request.url, url) else None)
    page.goto(url + path)
    page.wait_for_selector('[data-testid="stMetricValue"]', timeout=WAIT_MS)
    page.wait_for_selector(IDLE, timeout=WAIT_MS)
    return page


def outside(url, own):
    return not url.startswith((own, "data:", "blob:"))


def figures(page):
    return page.locator('[data-testid="stMetricValue"]').all_inner_texts()


def test_six_first_visitors_at_once_all_see_their_plan(server, browser):
    # First in this file: the server has just started, so that their sessions import the program at the same time.
    pages = [browser.new_context().new_page() for _ in range(6)]
    for page in pages:
        page.goto(server, wait_until="commit")
    for page in pages:
        page.wait_for_selector('[data-testid="stMetricValue"]', timeout=WAIT_MS)
        page.wait_for_selector(IDLE, timeout=WAIT_MS)  # the charts are drawn last
        assert page.get_by_text(FAULT).count() == 0
        assert page.locator('[data-testid="stException"]').count() == 0
        page.context.close()


def test_text_of_a_link_is_never_clickable(server, browser):
    bait = "https%3A%2F%2Fevil.example%2Fx%20www.evil.example%20a%40evil.example"
    page = open_page(browser, server, [], f"/?v=1&n={bait}&e={bait}&m={bait}&{bait}=1")
    assert page.get_by_text("evil.example").count() >= 2
    assert page.locator('a[href*="evil"]').count() == 0


def test_change_the_model_copy_the_link_open_it_elsewhere(server, browser):
    faults: list[str] = []
    page = open_page(browser, server, faults)
    before = figures(page)
    assert len(before) == 5

    model = page.get_by_role("combobox", name=re.compile("^Model"))
    model.click()
    model.fill("Qwen3-32B")
    page.get_by_role("option", name="Qwen3-32B", exact=True).click()
    sync_api.expect(page.locator("h3")).to_contain_text("Qwen3-32B", timeout=WAIT_MS)
    page.wait_for_selector(IDLE, timeout=WAIT_MS)
    after = figures(page)
    assert after != before
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot').length >= 3", timeout=WAIT_MS)

    page.get_by_test_id("stMainBlockContainer").get_by_role("button", name="Share").click()
    link = page.locator('[data-testid="stPopoverBody"] [data-testid="stCode"] code').first.inner_text().strip()
    assert link.startswith(server)
    assert "Qwen3-32B" in link

    other = open_page(browser, server, faults, link.removeprefix(server))
    sync_api.expect(other.locator("h3")).to_contain_text("Qwen3-32B")
    assert other.locator("h3").inner_text() == page.locator("h3").inner_text()
    assert figures(other) == after
    assert other.locator('[data-testid="stException"]').count() == 0
    assert not faults


def test_rapid_clicks_all_count_and_pages_keep_the_link(server, browser):
    faults: list[str] = []
    page = open_page(browser, server, faults, "/?v=1&n=Rapid")
    page.get_by_text("Simulation", exact=False).first.click()
    more = page.get_by_role("button", name="Increment value of Seed").or_(
        page.locator('[data-testid="stNumberInput"]', has_text="Seed").get_by_test_id("stNumberInputStepUp")
    )
    for _ in range(6):
        more.first.click()
        page.wait_for_timeout(40)
    sync_api.expect(page).to_have_url(re.compile(r"[?&]s=13\b"), timeout=WAIT_MS)  # 7 + 6
    page.get_by_role("link", name="Memory").click()
    sync_api.expect(page).to_have_url(re.compile(r"/memory\?.*s=13"), timeout=WAIT_MS)
    page.wait_for_selector(IDLE, timeout=WAIT_MS)
    assert page.get_by_text("Rapid").first.is_visible()
    assert not faults


def test_a_number_that_the_browser_keeps_back_is_told_below_its_field(server, browser):
    page = open_page(browser, server, [])
    page.locator(".st-key-s_users input").fill("99999999999999999999")
    page.locator(".st-key-s_users input").press("Enter")
    kept = page.locator(".st-key-s_users .react-aria-TextField[data-invalid=true]")
    kept.wait_for()
    said = kept.evaluate("field => getComputedStyle(field, '::after').content")
    assert "Users: this number is out of range" in said
    assert "The plan keeps the last valid value." in said


def test_phone_has_no_sideways_scroll(server, browser):
    faults: list[str] = []
    phone = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "color_scheme": "dark"}
    page = open_page(browser, server, faults, **phone)
    wide = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
    assert wide <= 390
    assert not faults
