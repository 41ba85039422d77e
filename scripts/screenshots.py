"""Write docs/figures/page-*.png: the page of a service with the demo's traffic, as it is now.

    python scripts/screenshots.py [SECONDS]

Needs Chromium with its driver, and selenium. The service listens on this machine only, on a free
port, and keeps its data in a temporary folder. Traffic is sent for 90 seconds, or as long as given.
"""

from __future__ import annotations

import io
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
from PIL import Image
from selenium import webdriver

from oclok.service import demo
from oclok.service.client import Client

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
FLAGS = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run"
QUIET = "--disable-background-networking --disable-component-update --disable-sync"
#: Seconds between two decisions.
PAUSE = 0.15


def main() -> None:
    """Start a service, send traffic, and take pictures."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 90.0
    with tempfile.TemporaryDirectory(prefix="oclok-screenshots-") as folder:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        storage = f"sqlite:///{folder}/oclok.db"
        command = [sys.executable, "-m", "oclok", "serve", "--storage", storage]
        service = subprocess.Popen([*command, "--port", str(port)], cwd=folder)
        try:
            url = f"http://127.0.0.1:{port}"
            decision = traffic(url, seconds)
            browser = started(folder)
            try:
                page = f"{url}/agents/{demo.AGENT}"
                take(browser, page, "page-agent", 1200, 1010)
                take(browser, f"{page}/decisions/{decision}", "page-decision", 1200, 760)
                take(browser, page, "page-phone", 390, 844, scheme="dark")
                take(browser, f"{url}/docs#post_decision", "page-api", 1200, 760)
            finally:
                browser.quit()
        finally:
            service.terminate()
            service.wait(30)


def traffic(url: str, seconds: float) -> str:
    """Send the demo's traffic for a while; return a decision whose outcomes are in."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/readyz").is_success:
                break
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    client, rng = Client(url, agent=demo.AGENT), np.random.default_rng(0)
    oracle = {"kind": "Partition", "groups": "city", "limits": 2}
    client.create(oracle, outcome_range=(0.0, 5.0), deadline=30.0)
    late: list = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        demo.play(client, rng, late)
        time.sleep(PAUSE)
    rows = httpx.get(f"{url}/v1/agents/{demo.AGENT}/decisions?status=learned&most=100").json()
    return str(
        next(row["id"] for row in rows if {o["status"] for o in row["outcomes"]} == {"learned"})
    )


def started(folder: str) -> webdriver.Chrome:
    """Start a browser without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("chromium-browser") or ""
    for flag in (*FLAGS.split(), *QUIET.split(), f"--user-data-dir={folder}/browser"):
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    return webdriver.Chrome(options=options, service=service)


def take(
    browser: webdriver.Chrome, url: str, name: str, width: int, height: int, scheme: str = "light"
) -> None:
    """Write a picture of a page once it is up to date, in few colours."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    browser.get("about:blank")
    browser.get(url)
    deadline = time.monotonic() + 60
    ready = (
        "return document.querySelectorAll('.feature, svg.bands, #post_decision').length > 0"
        " && !/connecting|estimated once|being estimated/.test(document.body.textContent)"
    )
    while not browser.execute_script(ready) and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(0.5)  # charts are drawn in the next frame
    picture = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    path = FIGURES / f"{name}.png"
    picture.quantize(255, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
