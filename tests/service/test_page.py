"""The page in a real browser: what an operator sees, by mouse, by keyboard and on a phone."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import httpx
import numpy as np
import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
AXE = Path(__file__).parents[1] / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Page:
    """A browser, and what tests ask of it."""

    def __init__(self, driver) -> None:
        self.driver = driver

    def open(self, url: str, width: int = 1200, scheme: str = "light") -> Page:
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get(url)
        return self

    def all(self, selector: str) -> list:
        return self.driver.find_elements("css selector", selector)

    def text(self, selector: str = "main") -> str:
        return self.driver.find_element("css selector", selector).text

    def card(self, name: str) -> str:
        """Return the value and the note of a card."""
        return self.driver.execute_script(
            "for (const dt of document.querySelectorAll('.cards dt'))"
            " if (dt.textContent === arguments[0]) return dt.parentNode.textContent;",
            name,
        )

    def script(self, code: str, *arguments: object):
        return self.driver.execute_script(code, *arguments)

    def severe(self) -> list[str]:
        entries = self.driver.get_log("browser")
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Chromium, without a window."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if BROWSER is None or DRIVER is None:
        pytest.skip("no chromium with its driver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_page_load_timeout(120)
    yield Page(driver)
    driver.quit()


@pytest.fixture
def world(server, make_arms, request):
    """Return a fresh agent, and functions that let it decide and tell it outcomes."""
    name = "p-" + re.sub(r"\W", "-", request.node.name)[:50]
    return World(server, name, make_arms)


class World:
    """An agent on a server."""

    def __init__(self, server, name: str, make_arms) -> None:
        self.server, self.name, self.path = server, name, f"/v1/agents/{name}"
        self.page = f"{server.url}/agents/{name}"
        self.rng, self.make_arms = np.random.default_rng(0), make_arms
        self.count = 0

    def make(self, **settings) -> World:
        settings = {"oracle": {"kind": "TopK", "k": 2}, "outcome_range": [-100, 100]} | settings
        assert self.server.client.put(self.path, json=settings).status_code == 201
        return self

    def decide(self, **request) -> dict:
        self.count += 1
        request = {"arms": self.make_arms(self.rng), "id": f"d{self.count}"} | request
        answer = self.server.client.post(f"{self.path}/decisions", json=request)
        assert answer.status_code == 201, answer.text
        return answer.json() | {"arms": request["arms"]}

    def learn(self, decision: dict, noise) -> None:
        features = {arm["id"]: arm["features"] for arm in decision["arms"]}
        items = [
            {
                "decision": decision["id"],
                "arm": arm["id"],
                "outcome": features[arm["id"]]["skill"] + noise(),
            }
            for arm in decision["chosen"]
        ]
        self.server.client.post(f"{self.path}/outcomes", json=items)

    def play(self, rounds: int, noise=None) -> World:
        noise = noise or (lambda: 0.3 * self.rng.standard_normal())
        for _ in range(rounds):
            self.learn(self.decide(), noise)
        return self

    def settle(self) -> None:
        """Wait until all outcomes are learned."""
        self.server.settle(self.name)

    def get(self, path: str = "") -> dict:
        return self.server.client.get(self.path + path).json()


# What used to contradict itself


@pytest.mark.parametrize("growth", [0.0, 0.05])
def test_there_is_one_verdict(page, world, growth):
    """Noise that grows faster than it can be learned contradicts the model."""
    world.make()
    world.play(160, lambda: 0.01 * np.exp(growth * world.count) * world.rng.standard_normal())
    world.settle()
    seen = world.get()
    page.open(world.page)
    until(lambda: "in the 95% band" in page.text())
    is_finding = any(finding["kind"] == "calibration" for finding in seen["health"])
    assert is_finding == (growth > 0)
    assert (seen["calibration"]["verdict"] == "overconfident") == is_finding
    assert ("overconfident" in page.text()) == is_finding
    assert (page.text(".verdict-panel .chip") == "Well") == (seen["verdict"]["level"] == "green")
    page.open(world.server.url)
    is_well = seen["verdict"]["level"] == "green"

    def shown() -> list[bool]:
        return ["Well" in row.text for row in page.all("tbody tr") if world.name in row.text]

    until(lambda: shown() == [is_well])


def test_an_agent_with_one_decision_is_too_early_to_judge(page, world):
    world.make().decide()
    page.open(world.page)
    until(lambda: page.text(".verdict-panel .chip") == "Too early")
    assert "0 of 50 outcomes" in page.text(".verdict-panel")
    assert "well" not in page.text(".verdict-panel").lower()
    page.open(world.server.url)
    until(lambda: world.name in page.text())
    row = next(row.text for row in page.all("tbody tr") if world.name in row.text)
    assert "Too early" in row


def test_every_outcome_has_one_status_in_rows_cards_and_filters(page, world):
    world.make(deadline=0.5).decide()
    until(lambda: world.get()["never_came"] == 2)
    page.open(f"{world.page}?status=never_came")
    until(lambda: "d1" in page.text("#decisions"))
    assert "2 never came" in page.text("#decisions tbody")
    assert "waiting" not in page.text("#decisions tbody")
    assert page.card("Never came").startswith("Never came2100% of settled outcomes")
    assert page.card("Open").startswith("Open0decisions; outcomes waiting: 0")
    page.open(f"{world.page}/decisions/d1")
    until(lambda: "never came" in page.text("tbody"))
    page.open(f"{world.page}?status=waiting")
    until(lambda: "No such decisions" in page.text("#decisions"))


def test_a_decision_shows_the_band_of_outcomes_beside_that_of_the_mean(page, world):
    world.make().play(60)
    world.settle()
    world.play(10)
    inside = []
    for n in range(61, 71):
        page.open(f"{world.page}/decisions/d{n}")
        until(lambda: page.all("svg.bands rect.outcome"))
        assert "95% band of a single outcome (with noise)" in page.text(".legend")
        assert "95% band of the expected outcome (without noise)" in page.text(".legend")
        inside += page.script(
            """return [...document.querySelectorAll('tr.chosen svg.bands')].map((svg) => {
              const box = (name) => svg.querySelector(name).getBoundingClientRect();
              const [wide, narrow, mark] = ['.outcome-band', '.mean-band', '.outcome'].map(box);
              if (wide.width <= narrow.width) throw Error('noise is missing');
              const at = (mark.left + mark.right) / 2;
              return wide.left <= at && at <= wide.right;
            });"""
        )
    assert world.get("/decisions/d70")["outcome_range"] == [-100, 100]
    for arm in (seen := world.get("/decisions/d70"))["arms"]:
        assert arm["outcome_std"] == pytest.approx(np.hypot(arm["std"], seen["noise_std"]))
    assert len(inside) == 20
    assert sum(inside) >= 16  # of 20 with 95% each: fewer happen once in 10,000 times


def test_the_legend_of_a_decision_has_the_colours_of_its_bands(page, world):
    world.make().play(5)
    page.open(f"{world.page}/decisions/d5")
    until(lambda: page.all("svg.bands rect.outcome-band"))
    for name in ("outcome-band", "mean-band"):
        swatch, band = page.script(
            """const of = (selector, part) => {
                 const seen = getComputedStyle(document.querySelector(selector), part);
                 return [part ? seen.backgroundColor : seen.fill, seen.opacity];
               };
               return [of(`.swatch.${arguments[0]}`, '::before'), of(`svg .${arguments[0]}`)];""",
            name,
        )
        assert swatch == band


def test_the_bands_of_a_decision_end_where_outcomes_do(page, world):
    world.make(outcome_range=[0, 0.5]).play(20, lambda: 0.0)  # nearly all are refused
    decision = world.decide()
    arms = world.get("/decisions/" + decision["id"])["arms"]
    assert any(arm["mean"] + 1.96 * arm["outcome_std"] > 0.5 for arm in arms)
    page.open(f"{world.page}/decisions/{decision['id']}")
    until(lambda: len(page.all("svg.bands")) == len(arms))
    for svg in page.all("svg.bands"):
        said = svg.get_attribute("aria-label")
        low, high = re.search(r"single outcome (\S+) to (\S+),", said).groups()
        assert 0 <= float(low) < float(high) <= 0.5


def test_the_band_of_the_past_is_what_was_expected_then_and_within_the_range(page, world):
    world.make(outcome_range=[-10, 10]).play(40)
    world.settle()
    before = world.decide()
    noise = world.get("/decisions/" + before["id"])["noise_std"]
    world.play(40, lambda: float(np.clip(5 * world.rng.standard_normal(), -8, 8)))
    world.settle()
    after = world.decide()
    assert world.get("/decisions/" + after["id"])["noise_std"] > 3 * noise
    assert world.get("/decisions/" + before["id"])["noise_std"] == noise
    seen = world.get("/history?range=all")
    for low, high in zip(seen["lower"], seen["upper"], strict=True):
        assert low is None or -10 <= low < high <= 10
    assert any(low is not None for low in seen["lower"])
    page.open(f"{world.page}?range=all")
    until(lambda: page.all("#outcomes canvas"))
    assert "expected when the decisions were made" in page.all("#outcomes .plot")[0].get_attribute(
        "aria-label"
    )


def test_the_speed_of_the_server_is_shown_as_the_server_s(page, world):
    world.make().play(1)
    page.open(world.page)
    until(lambda: "d1" in page.text("#decisions"))
    assert "Median" not in page.text()
    assert "Speed" not in page.text()
    page.open(world.server.url)
    until(lambda: "POST decisions" in page.text())
    assert "of the process that answered" in page.text()


def test_left_on_the_table_has_a_unit_and_a_meaning(page, world):
    world.make().play(30)
    page.open(world.page)
    until(lambda: re.search(r"[\d.]+ to [\d.]+per decision", page.card("Left on the table")))
    said = page.card("Left on the table")
    assert "in units of outcome" in said
    assert "estimated anew" in said
    regret = world.get()["regret"]
    shown = float(re.search(r"([\d.]+) to", said)[1])
    assert shown == pytest.approx(regret["lower"] / regret["rounds"], rel=0.01)


# What an operator does


def test_texts_of_arms_are_shown_as_texts_and_reasons_name_the_constraint(page, world):
    evil = "<img src=x onerror=document.title='hacked'>"
    world.make(oracle={"kind": "Partition", "groups": "city", "limits": 1}).play(10)
    arms = world.make_arms(world.rng)
    for arm in arms:
        arm["features"]["city"] = "Lima"
    arms[0]["id"] = evil
    world.decide(arms=arms, include=[evil])
    page.open(f"{world.page}/decisions/d{world.count}")
    until(lambda: len(page.all("tbody tr")) == 5)
    text = page.text()
    assert evil in text
    assert "included by request" in text
    assert "Lima already has 1 of 1" in text
    assert "Details" in text
    assert page.driver.title == f"oclok · d{world.count} · {world.name}"
    assert not page.all("main img")
    assert page.severe() == []


def test_rows_hold_still_and_new_decisions_wait_behind_a_button(page, world):
    world.make().play(3)
    page.open(world.page)
    until(lambda: "d3" in page.text("#decisions tbody"))
    first = page.all("#decisions tbody tr")[0].text
    world.play(2)
    until(lambda: "Show 2 new" in page.text("#decisions"))
    assert page.all("#decisions tbody tr")[0].text == first
    next(b for b in page.all("#decisions button") if "new" in b.text).click()
    until(lambda: "d5" in page.all("#decisions tbody tr")[0].text)


def test_decisions_are_searched_filtered_and_paged(page, world):
    world.make().play(30)
    world.decide(id="special")
    page.open(world.page)
    until(lambda: len(page.all("#decisions tbody tr")) == 25)
    next(b for b in page.all(".pager button") if b.text == "Older").click()
    until(lambda: len(page.all("#decisions tbody tr")) == 6)
    search = page.all("input[type=search]")[0]
    search.send_keys("spec\n")
    until(lambda: [row.text.split()[0] for row in page.all("#decisions tbody tr")] == ["special"])
    search.clear()
    page.script("arguments[0].value = 'waiting'", page.all("select")[0])
    page.script("arguments[0].dispatchEvent(new Event('change'))", page.all("select")[0])
    until(lambda: [row.text.split()[0] for row in page.all("#decisions tbody tr")] == ["special"])


def test_a_quarantined_outcome_is_accepted_on_the_page(page, world):
    world.make(outcome_range=None).play(60)
    wrong = world.decide()
    item = {"decision": wrong["id"], "arm": wrong["chosen"][0]["id"], "outcome": 1e6}
    answer = world.server.client.post(f"{world.path}/outcomes", json=[item]).json()
    assert answer["quarantined"] == 1
    page.open(world.page)
    until(lambda: "Look into it" in page.text(".verdict-panel"))
    page.driver.find_element("link text", "Show these decisions").click()
    until(lambda: len(page.all("#decisions tbody tr")) == 1)
    page.all("#decisions tbody a")[0].click()
    until(lambda: page.all("tbody button"))
    widths = [float(rect.get_attribute("width")) for rect in page.all("rect.mean-band")]
    assert min(widths) > 1  # of 100: the axis does not reach for the quarantined outcome
    page.all("tbody button")[0].click()
    until(lambda: not page.all("tbody button"))
    assert world.get()["quarantined"] == 0


def test_what_was_learned_is_told_by_feature_name(page, world):
    world.make().play(40)
    world.settle()
    page.open(world.page)
    until(lambda: len(page.all("#learned .feature")) == 2)
    assert page.all("#learned .feature")[0].text.startswith("skill")
    seen = world.get("/features")["features"]
    assert seen[0]["relevance"] + seen[1]["relevance"] == pytest.approx(1)
    assert seen[0]["mean"][-1] > seen[0]["mean"][0]  # outcomes grow with skill
    assert all(
        low < mid < high
        for low, mid, high in zip(*(seen[0][k] for k in ("lower", "mean", "upper")), strict=True)
    )


def test_lift_over_the_control_group_is_shown_where_there_is_one(page, world):
    world.make(holdout=0.5, baseline="uniform").play(20)
    page.open(world.page)
    until(lambda: "beyond the baseline" in page.card("Lift"))
    seen = world.get("/lift")
    assert ("Too early" in page.card("Lift")) == (seen["lower"] is None)
    other = World(world.server, world.name + "-without", world.make_arms).make().play(2)
    page.open(other.page)
    until(lambda: page.card("Mean outcome") != "Mean outcome–")
    assert "Lift" not in page.text()


def test_only_those_who_may_accept_see_the_button(page, start_server, make_arms):
    from oclok.service.access import Access
    from oclok.service.database import Database

    server = start_server()
    world = World(server, "a", make_arms).make(outcome_range=None).play(60)
    wrong = world.decide()
    item = {"decision": wrong["id"], "arm": wrong["chosen"][0]["id"], "outcome": 1e6}
    server.client.post(f"{world.path}/outcomes", json=[item])
    database = Database(server.storage)
    keys = {role: Access(database).add(role, ["read", role]) for role in ("decide", "learn")}
    database.close()
    until(lambda: server.client.get("/v1/agents").status_code == 401)
    for role, key in keys.items():
        page.open(f"{server.url}/healthz")  # where no script asks for a key
        page.script("sessionStorage.setItem('key', arguments[0])", key)
        page.driver.get(f"{world.page}/decisions/{wrong['id']}")
        until(lambda: "quarantined" in page.text("tbody"))
        assert bool(page.all("tbody button")) == (role == "learn")
    page.script("sessionStorage.clear()")


def test_the_page_says_that_the_server_is_gone_and_since_when(page, start_server):
    server = start_server()
    server.client.put("/v1/agents/a", json={"oracle": {"kind": "TopK", "k": 1}})
    page.open(f"{server.url}/agents/a")
    until(lambda: page.text("#live").startswith("updated"))
    server.kill()
    until(lambda: re.search(r"No answer since \d", page.text("#banner")))
    assert page.script("return document.body.classList.contains('stale')")
    server.start()
    until(lambda: not page.all("#banner")[0].is_displayed())
    assert not page.script("return document.body.classList.contains('stale')")


def test_an_empty_service_shows_calls_that_work(page, start_server):
    server = start_server()
    page.open(server.url)
    until(lambda: "curl" in page.text())
    for call in page.text("pre").replace("\\\n", " ").splitlines():
        method, url = re.search(r"-X (\w+) (\S+)", call).groups()
        body = re.search(r"-d '(.*)'", call)[1]
        headers = {"Content-Type": "application/json"}
        assert httpx.request(method, url, content=body, headers=headers).is_success
    until(lambda: page.all("tbody a"))


def test_a_key_for_one_agent_lands_on_that_agent(page, start_server):
    from oclok.service.access import Access
    from oclok.service.database import Database

    server = start_server()
    for name in ("mine", "other"):
        server.client.put(f"/v1/agents/{name}", json={"oracle": {"kind": "TopK", "k": 1}})
    database = Database(server.storage)
    key = Access(database).add("me", ["read"], "mine")
    database.close()
    until(lambda: server.client.get("/v1/agents").status_code == 401)
    page.open(server.url)
    until(lambda: page.all("#key")[0].is_displayed())
    page.all("#secret")[0].send_keys("oclok_wrong\n")
    until(lambda: page.text("#wrong") == "The key is not known.")
    assert page.all("#secret")[0].get_attribute("aria-invalid") == "true"
    page.all("#secret")[0].send_keys(f"{key}\n")
    until(lambda: page.driver.title == "oclok · mine")
    until(lambda: "Too early" in page.text())
    page.script("sessionStorage.clear()")


# How it is made


def paths(world) -> list[str]:
    return ["/", f"/agents/{world.name}", f"/agents/{world.name}/decisions/d1", "/docs"]


def test_nothing_scrolls_sideways_on_a_phone(page, world):
    world.make().play(3)
    world.decide(id="a-very-long-id-" + "x" * 100)
    for path in paths(world):
        page.open(world.server.url + path, width=390)
        until(lambda: len(page.text()) > 200)
        wide = page.script("return document.documentElement.scrollWidth")
        assert wide <= 390, (path, wide)


def test_the_keyboard_reaches_everything(page, world):
    from selenium.webdriver.common.keys import Keys

    world.make().play(3)
    page.open(world.server.url)
    until(lambda: page.all("tbody a"))
    body = page.driver.switch_to

    def tab_to(wanted) -> None:
        for _ in range(60):
            body.active_element.send_keys(Keys.TAB)
            if wanted(body.active_element):
                return
        raise AssertionError("not reached")

    tab_to(lambda e: e.text == world.name)
    body.active_element.send_keys(Keys.ENTER)
    until(lambda: "d3" in page.text("#decisions"))
    tab_to(lambda e: e.get_attribute("name") == "range")
    body.active_element.send_keys(Keys.ARROW_RIGHT)
    until(lambda: "last day" in page.card("Decisions"))
    tab_to(lambda e: e.text == "d3")
    body.active_element.send_keys(Keys.ENTER)
    until(lambda: page.all("tbody details"))
    tab_to(lambda e: e.tag_name == "summary")
    body.active_element.send_keys(Keys.ENTER)
    until(lambda: page.all("details[open]"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(page, world, scheme):
    if not AXE.exists():
        pytest.skip("axe-core is not installed: npm --prefix tests install")
    world.make().play(60)
    for path in paths(world):
        page.open(world.server.url + path, scheme=scheme)
        until(lambda: len(page.text()) > 200)
        page.script(AXE.read_text("utf-8"))
        found = page.driver.execute_async_script(
            "const done = arguments[arguments.length - 1]; axe.run().then(done);"
        )
        bad = [
            (path, one["id"], one["nodes"][0]["html"])
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]
        assert bad == []


def test_everything_comes_from_the_service_itself_and_is_small(server):
    html = server.client.get("/").text + server.client.get("/docs").text
    names = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', html))
    total, seen = 0, set()
    while names - seen:
        name = (names - seen).pop()
        seen.add(name)
        with server.client.stream("GET", name, headers={"Accept-Encoding": "gzip"}) as answer:
            assert answer.status_code == 200, name
            total += sum(map(len, answer.iter_raw()))
        text = server.client.get(name).text
        names |= set(re.findall(r'from "(/static/[^"]+)"', text))
        assert "//cdn" not in text
    assert 'src="http' not in html
    assert len(seen) > 10
    assert total < 80_000
    assert "default-src 'self'" in server.client.get("/").headers["content-security-policy"]
    again = server.client.get("/static/main.js")
    headers = {"If-None-Match": again.headers["etag"]}
    assert server.client.get("/static/main.js", headers=headers).status_code == 304
    assert server.client.get("/static/../page.py").status_code == 404


def test_an_idle_tab_asks_seldom_and_is_told_little(page, world):
    world.make().play(3)
    page.open(world.page)
    until(lambda: page.text("#live").startswith("updated"))
    tag = world.server.client.get(world.path).headers["etag"]
    until(lambda: world.server.client.get(world.path).headers["etag"] == tag)
    answer = world.server.client.get(world.path, headers={"If-None-Match": tag})
    assert (answer.status_code, answer.content) == (304, b"")


def test_the_reference_makes_calls(page, world):
    world.make().play(1)
    page.open(f"{world.server.url}/docs#get_decision")
    until(lambda: page.all("#get_decision form"))
    page.script("for (const d of document.querySelectorAll('details')) d.open = true")
    for name, value in (("agent", world.name), ("decision", "d1")):
        page.all(f"#get_decision input[name={name}]")[0].send_keys(value)
    page.all("#get_decision form button")[0].click()
    until(lambda: '"round": 1' in page.text("#get_decision form pre"))
    text = page.text()
    for call in ("put_agent", "post_decision", "post_outcomes", "get_history"):
        assert call in text
    assert page.severe() == []


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
        assert time.monotonic() < deadline, "still not so"
        time.sleep(0.1)
