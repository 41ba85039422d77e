// The page asks the API every two seconds and changes what has changed.
"use strict";

const EVERY = 2000;
const main = document.getElementById("main");
const live = document.getElementById("live");
const parts = location.pathname.split("/").filter(Boolean).map(decodeURIComponent);

class Refused extends Error {}
class Missing extends Error {}

async function ask(path) {
  const key = sessionStorage.getItem("key");
  const answer = await fetch(path, { headers: key ? { Authorization: `Bearer ${key}` } : {} });
  const body = await answer.json();
  if (answer.status === 401 || answer.status === 403) throw new Refused(body.detail);
  if (answer.status === 404) throw new Missing(body.detail);
  if (!answer.ok) throw new Error(body.detail || answer.statusText);
  return body;
}

function agentsPage() {
  const columns = ["Agent", "Decisions", "Outcomes", "Waiting", "Late", "Quarantined", "Health"];
  const list = table("All agents", columns);
  const empty = el("p", {}, "No agents yet: PUT /v1/agents/NAME makes one.");
  main.append(el("h1", {}, "Agents"), el("section", {}, list.node, empty));
  return async () => {
    const agents = await ask("/v1/agents");
    empty.hidden = agents.length > 0;
    fill(list.body, agents.map((agent) => ({
      key: agent.name,
      cells: [
        link(agent.name, `/agents/${encodeURIComponent(agent.name)}`), num(agent.rounds),
        num(agent.learned), num(agent.waiting), num(agent.late), num(agent.quarantined),
        text(agent.health.length ? agent.health[0].message : "well"),
      ],
    })));
  };
}

function agentPage(name) {
  const base = `/v1/agents/${encodeURIComponent(name)}`;
  const top = cards(["Decisions", "Outcomes learned", "Outcomes waiting", "Decisions late", "Quarantined",
    "Left on the table", "Calibration"]);
  const outcomes = el("div", { class: "plot" });
  const coverage = el("div", { class: "plot" });
  const weights = table("Heaviest first", ["Weight", "Noise std", "Kernel"]);
  const findings = el("ul", { class: "findings" });
  const speed = table("Time per call of the process that answered", ["Call", "Median", "99%"]);
  const list = table("Latest decisions", ["Decision", "Round", "Time", "Arms", "Chosen", "Outcomes"]);
  const grid = el("div", { class: "grid" });
  const wide = section("Outcomes over time, with what was expected of them", outcomes);
  wide.className = "wide";
  grid.append(wide, section("Calibration", coverage), section("Kernel weights", weights.node),
    section("Health", findings), section("Speed", speed.node));
  main.append(el("h1", {}, name), top.node, grid, section("Decisions", list.node));
  let known = "";
  return async () => {
    const [agent, history, decisions] = await Promise.all([
      ask(base), ask(`${base}/history`), ask(`${base}/decisions?most=30`)]);
    top.set("Decisions", number(agent.rounds));
    top.set("Outcomes learned", number(agent.learned));
    top.set("Outcomes waiting", number(agent.waiting));
    top.set("Decisions late", number(agent.late));
    top.set("Quarantined", number(agent.quarantined));
    const { regret } = agent;
    top.set("Left on the table", regret ? `${number(regret.lower, 2)} to ${number(regret.upper, 2)}` : "–");
    const { verdict } = agent.calibration;
    top.set("Calibration", verdict === "neither" ? "good" : verdict);
    drawOutcomes(outcomes, history);
    drawCoverage(coverage, agent.calibration);
    fill(weights.body, agent.weights.slice(0, 8).map((w, place) => ({
      key: String(place), cells: [percent(w.weight), num(Math.sqrt(w.noise_variance), 3), text(w.kernel)] })));
    const now = JSON.stringify(agent.health);
    if (now !== known) {
      known = now;
      findings.replaceChildren(...(agent.health.length
        ? agent.health.map((f) => el("li", { class: f.severity }, `${f.severity}: ${f.message}`))
        : [el("li", { class: "fine" }, "All is well.")]));
    }
    const milliseconds = (value) => ({ text: `${number(value * 1000, 3)} ms`, number: true });
    fill(speed.body, Object.entries(history.speed).map(([call, seen]) => ({
      key: call, cells: [text(call), milliseconds(seen.median), milliseconds(seen.p99)] })));
    fill(list.body, decisions.map((decision) => ({
      key: decision.id,
      cells: [
        link(decision.id, `/agents/${encodeURIComponent(name)}/decisions/${encodeURIComponent(decision.id)}`),
        num(decision.round), { text: when(decision.time), number: true }, num(decision.arms),
        text(decision.chosen.join(", ")),
        text(told(Object.values(decision.outcomes))),
      ],
    })));
  };
}

function told(outcomes) {
  const seen = outcomes.filter((y) => y !== null).map((y) => number(y, 3));
  const waiting = outcomes.length - seen.length;
  return [...seen, ...(waiting ? [`${waiting} waiting`] : [])].join(", ");
}

function decisionPage(name, id) {
  const path = `/v1/agents/${encodeURIComponent(name)}/decisions/${encodeURIComponent(id)}`;
  const about = el("p");
  const bands = el("div", { class: "plot" });
  const list = table("All arms that were offered, best index first",
    ["Arm", "Chosen", "Mean", "±2 std", "Index", "Outcome", "Why", "Features"]);
  main.append(el("h1", {}, `Decision ${id}`), about, section("What was thought of each arm", bands),
    section("Arms", list.node));
  return async () => {
    const decision = await ask(path);
    about.textContent = `Round ${number(decision.round)}, ${when(decision.time)}; ` +
      `${decision.chosen.length} of ${decision.arms.length} arms chosen` +
      (decision.is_exact ? "; provably as the exact posterior would." : ".");
    const arms = decision.arms;
    drawBands(bands, arms);
    fill(list.body, arms.map((arm) => ({
      key: String(arm.id), chosen: arm.chosen,
      cells: [
        text(arm.id), text(arm.chosen ? "yes" : "no"), num(arm.mean), num(arm.std === null ? null : 2 * arm.std),
        num(arm.index), text(arm.outcome === null ? (arm.chosen ? arm.status : "") : number(arm.outcome)),
        text(arm.reason ?? ""),
        text(Object.entries(arm.features).map(([k, v]) => `${k}: ${feature(v)}`).join(", ")),
      ],
    })));
  };
}

function feature(value) {
  if (Array.isArray(value)) return `[${value.length}]`;
  return typeof value === "number" ? Number(value.toPrecision(6)) : value;
}

function crumbs() {
  const path = document.getElementById("path");
  if (parts[1]) path.append(el("li", {}, el("a", { href: `/agents/${encodeURIComponent(parts[1])}` }, parts[1])));
  if (parts[3]) path.append(el("li", { "aria-current": "page" }, parts[3]));
  document.title = [...parts.filter((_, n) => n % 2), "oclok"].reverse().join(" · ");
}

function say(message, off = false) {
  live.className = off ? "off" : "";
  if (live.textContent !== message) live.textContent = message;
}

function askForKey() {
  const form = document.getElementById("key");
  form.hidden = false;
  main.hidden = true;
  form.onsubmit = (event) => {
    event.preventDefault();
    sessionStorage.setItem("key", document.getElementById("secret").value);
    location.reload();
  };
  document.getElementById("secret").focus();
}

async function start() {
  crumbs();
  const refresh = parts[3] ? decisionPage(parts[1], parts[3]) : parts[1] ? agentPage(parts[1]) : agentsPage();
  for (;;) {
    if (!document.hidden) {
      try {
        await refresh();
        say("live");
      } catch (error) {
        if (error instanceof Refused) {
          askForKey();
          say(error.message, true);
          return;
        }
        if (error instanceof Missing) {
          main.replaceChildren(el("h1", {}, "Not found"), el("p", {}, `${error.message}.`));
          say("not live", true);
          return;
        }
        say(`not live: ${error.message}`, true);
      }
    }
    await new Promise((done) => setTimeout(done, EVERY));
  }
}

start();
