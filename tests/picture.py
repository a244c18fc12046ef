"""Take the README's picture of the dashboard: `python -m tests.picture`."""

from playwright.sync_api import sync_playwright

from tests.benchmarks.bench_dashboard import CHROMIUM, FLAGS, ROOT, settle, start

PICTURE = ROOT / ".github" / "headroom.png"
QUERY = "?m=Qwen/Qwen3-32B&w=fp8&tp=2&u=800&day=office&n=Assistant+for+800+engineers"


def main() -> None:
    """Open the page and save what its first screen shows."""
    process, url, _ = start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            page = browser.new_page(viewport={"width": 1360, "height": 1000}, color_scheme="light")
            page.goto(url + "/" + QUERY)
            settle(page)
            page.wait_for_timeout(3000)
            PICTURE.parent.mkdir(exist_ok=True)
            page.screenshot(path=str(PICTURE))
            browser.close()
    finally:
        process.terminate()
        process.wait(timeout=20)


if __name__ == "__main__":
    main()
