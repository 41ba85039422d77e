"""The page in a real browser."""

from __future__ import annotations

import shutil
import time

import numpy as np
import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="module")
def browser():
    """Chromium, without a window."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if BROWSER is None or DRIVER is None:
        pytest.skip("no chromium with its driver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_page_load_timeout(120)
    yield driver
    driver.quit()


def test_the_page_is_live_and_shows_agents_and_decisions(server, browser, settings, make_arms):
    evil = "<img src=x onerror=document.title='hacked'>"
    rng = np.random.default_rng(0)
    server.client.put("/v1/agents/page", json=settings)

    def decide(name: str) -> None:
        arms = make_arms(rng)
        arms[0]["id"] = evil
        request = {"arms": arms, "id": name, "include": [evil]}
        chosen = server.client.post("/v1/agents/page/decisions", json=request).json()["chosen"]
        items = [{"decision": name, "arm": arm["id"], "outcome": 1.0} for arm in chosen[:1]]
        server.client.post("/v1/agents/page/outcomes", json=items)

    decide("first")
    browser.get(server.url)
    until(lambda: "page" in browser.find_element("css selector", "tbody").text)
    browser.find_element("link text", "page").send_keys("\n")  # by keyboard
    until(lambda: "first" in browser.page_source)
    decide("second")  # it appears without a reload
    until(lambda: len(browser.find_elements("link text", "second")) == 1)
    until(lambda: len(browser.find_elements("css selector", ".plot svg.main-svg")) >= 3)
    for plot in browser.find_elements("css selector", ".plot"):
        assert plot.get_attribute("aria-label")
    browser.find_element("link text", "second").click()
    until(lambda: len(browser.find_elements("css selector", "tbody tr")) == 5)
    text = browser.find_element("tag name", "main").text
    assert evil in text  # as text
    assert "included by request" in text
    assert "waiting" in text
    assert browser.title == "oclok · second · page"
    assert not browser.find_elements("css selector", "main img")
    for header in browser.find_elements("css selector", "th"):
        assert header.get_attribute("scope") == "col"
    severe = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert severe == []


def test_everything_comes_from_the_service_itself(server):
    for path in ("/", "/docs", "/static/page.js", "/static/page.css"):
        text = server.client.get(path).text
        assert "//cdn" not in text
        assert 'src="http' not in text
    assert len(server.client.get("/static/plotly.min.js").content) > 1_000_000
    assert "default-src 'self'" in server.client.get("/").headers["content-security-policy"]
    assert "POST /v1/agents/{agent}/decisions" in server.client.get("/docs").text


def until(condition, seconds: float = 60.0) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except Exception:
            if time.monotonic() > deadline:
                raise
        assert time.monotonic() < deadline
        time.sleep(0.2)
