// The page asks the API every two seconds and changes what has changed. Texts of agents and arms
// only ever become text nodes.
"use strict";

const EVERY = 2000;
const main = document.getElementById("main");
const live = document.getElementById("live");
const parts = location.pathname.split("/").filter(Boolean).map(decodeURIComponent);

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value) || Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return value.toPrecision(digits);
}

function when(seconds) {
  return new Date(seconds * 1000).toLocaleString();
}

class Refused extends Error {}

async function ask(path) {
  const key = sessionStorage.getItem("key");
  const answer = await fetch(path, { headers: key ? { Authorization: `Bearer ${key}` } : {} });
  const body = await answer.json();
  if (answer.status === 401 || answer.status === 403) throw new Refused(body.detail);
  if (!answer.ok) throw new Error(body.detail || answer.statusText);
  return body;
}

// Tables keep the rows that stay, so that keyboard focus is not lost.
function table(caption, columns) {
  const head = el("tr", {}, ...columns.map((name) => el("th", { scope: "col" }, name)));
  const body = el("tbody");
  const node = el("table", {}, el("caption", {}, caption), el("thead", {}, head), body);
  return { node: el("div", { class: "scroll" }, node), body };
}

function fill(body, rows) {
  const known = new Map([...body.children].map((row) => [row.dataset.key, row]));
  rows.forEach(({ key, cells, chosen }, place) => {
    let row = known.get(key);
    if (!row) {
      row = el("tr", { "data-key": key });
      for (const cell of cells) row.append(el("td", cell.number ? { class: "number" } : {}));
    }
    known.delete(key);
    row.className = chosen ? "chosen" : "";
    cells.forEach((cell, n) => {
      const td = row.children[n];
      if (cell.href) {
        if (!td.firstChild) td.append(el("a", { href: cell.href }));
        if (td.firstChild.textContent !== cell.text) td.firstChild.textContent = cell.text;
      } else if (td.textContent !== cell.text) td.textContent = cell.text;
    });
    if (body.children[place] !== row) body.insertBefore(row, body.children[place] || null);
  });
  for (const row of known.values()) row.remove();
}

const text = (value) => ({ text: String(value ?? "–") });
const num = (value, digits) => ({ text: number(value, digits), number: true });
const link = (value, href) => ({ text: String(value), href });

function section(title, ...children) {
  return el("section", {}, el("h2", {}, title), ...children);
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function draw(node, label, traces, layout = {}) {
  node.setAttribute("role", "img");
  node.setAttribute("aria-label", label);
  const axis = { gridcolor: colour("--line"), zerolinecolor: colour("--line"), automargin: true };
  const look = {
    margin: { l: 50, r: 10, t: 10, b: 40 }, showlegend: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("--ink"), family: "system-ui, sans-serif", size: 12 }, ...layout,
  };
  look.xaxis = { ...axis, ...(layout.xaxis || {}) };
  look.yaxis = { ...axis, ...(layout.yaxis || {}) };
  Plotly.react(node, traces, look, { displayModeBar: false, responsive: true });
}

function cards(entries) {
  const list = el("dl", { class: "cards" });
  const shown = new Map();
  for (const name of entries) {
    const value = el("dd", {}, "–");
    shown.set(name, value);
    list.append(el("div", {}, el("dt", {}, name), value));
  }
  return { node: list, set: (name, value) => {
    const node = shown.get(name);
    if (node.textContent !== value) node.textContent = value;
  } };
}

function agentsPage() {
  const columns = ["Agent", "Decisions", "Outcomes", "Waiting", "Late", "Quarantined", "Health"];
  const list = table("All agents", columns);
  const empty = el("p", {}, "No agents yet: PUT /v1/agents/NAME makes one.");
  main.append(el("h1", {}, "Agents"), list.node, empty);
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
  const weights = el("div", { class: "plot" });
  const findings = el("ul", { class: "findings" });
  const speed = table("Time per call of the process that answered", ["Call", "Median", "99%"]);
  const list = table("Latest decisions", ["Decision", "Round", "Time", "Arms", "Chosen", "Outcomes"]);
  const grid = el("div", { class: "grid" });
  const wide = section("Outcomes over time, with what was expected of them", outcomes);
  wide.className = "wide";
  grid.append(wide, section("Calibration", coverage), section("Kernel weights", weights),
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
    drawWeights(weights, agent.weights);
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

function drawOutcomes(node, { points, noise_std: noise }) {
  const rounds = new Map();
  points.outcome.forEach((y, n) => {
    if (y === null) return;
    const seen = rounds.get(points.round[n]) || { count: 0, y: 0, mean: 0, variance: 0 };
    seen.count += 1;
    seen.y += y;
    seen.mean += points.mean[n] ?? 0;
    seen.variance += (points.std[n] ?? 0) ** 2 + (noise ?? 0) ** 2;
    rounds.set(points.round[n], seen);
  });
  const x = [...rounds.keys()].sort((a, b) => a - b);
  const of = (read) => x.map((round) => read(rounds.get(round)));
  const width = (seen) => (2 * Math.sqrt(seen.variance)) / seen.count;
  const line = { color: "rgba(0,0,0,0)" };
  draw(node, `Mean outcome of each of the latest ${x.length} rounds, and the 95% band that was expected`, [
    { x, y: of((s) => s.mean / s.count - width(s)), mode: "lines", line, hoverinfo: "skip" },
    { x, y: of((s) => s.mean / s.count + width(s)), mode: "lines", line, fill: "tonexty",
      fillcolor: colour("--band"), hoverinfo: "skip" },
    { x, y: of((s) => s.mean / s.count), mode: "lines", line: { color: colour("--accent"), width: 1.5 }, name: "expected" },
    { x, y: of((s) => s.y / s.count), mode: "markers", marker: { color: colour("--ink"), size: 5 }, name: "seen" },
  ], { xaxis: { title: { text: "round" } }, yaxis: { title: { text: "mean outcome of the chosen arms" } } });
}

function drawCoverage(node, calibration) {
  const levels = calibration ? Object.keys(calibration.coverage).map(Number) : [];
  const seen = levels.map((level) => calibration.coverage[level]);
  const said = levels.map((level, n) => `${number(100 * (seen[n] ?? NaN), 3)}% of outcomes in the ${100 * level}% band`).join(", ");
  draw(node, `Calibration: ${said}`, [
    { x: [0, 1], y: [0, 1], mode: "lines", line: { color: colour("--soft"), dash: "dot" }, hoverinfo: "skip" },
    { x: levels, y: seen, mode: "lines+markers", marker: { color: colour("--accent"), size: 9 } },
  ], { xaxis: { title: { text: "expected share" }, range: [0, 1] }, yaxis: { title: { text: "seen share" }, range: [0, 1.02] } });
}

function drawWeights(node, weights) {
  const shown = weights.slice(0, 8).reverse();
  const short = (kernel) => (kernel.length > 42 ? `${kernel.slice(0, 40)}…` : kernel);
  draw(node, `Kernel weights: ${shown.map((w) => `${w.kernel} ${number(100 * w.weight, 3)}%`).join(", ")}`, [
    { type: "bar", orientation: "h", x: shown.map((w) => w.weight),
      y: shown.map((w, n) => `${short(w.kernel)}${" ".repeat(n)}`), width: 0.5, marker: { color: colour("--accent") } },
  ], { xaxis: { range: [0, 1], title: { text: "weight" } } });
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
    const shown = arms.slice(0, 150);
    const x = shown.map((arm) => String(arm.id).replace(/[<>&]/g, " "));
    const mark = (chosen) => shown.map((arm) => (arm.chosen === chosen ? arm.mean : null));
    const trace = (chosen, name, color) => ({
      x, y: mark(chosen), name, mode: "markers", marker: { color, size: 8 },
      error_y: { type: "data", array: shown.map((arm) => 2 * (arm.std || 0)), color } });
    draw(bands, `Mean and band of ${shown.length} arms, best index first`, [
      trace(true, "chosen", colour("--accent")), trace(false, "not chosen", colour("--soft")),
      { x, y: shown.map((arm) => arm.index), mode: "markers", name: "index",
        marker: { symbol: "line-ew-open", size: 10, color: colour("--warn") } },
      { x, y: shown.map((arm) => arm.outcome), mode: "markers", name: "outcome",
        marker: { symbol: "x", size: 9, color: colour("--good") } },
    ], { showlegend: true, legend: { orientation: "h", y: 1.15 }, xaxis: { type: "category" } });
    fill(list.body, arms.map((arm) => ({
      key: String(arm.id), chosen: arm.chosen,
      cells: [
        text(arm.id), text(arm.chosen ? "yes" : "no"), num(arm.mean), num(arm.std === null ? null : 2 * arm.std),
        num(arm.index), text(arm.outcome === null ? (arm.chosen ? arm.status : "") : number(arm.outcome)),
        text(arm.reason ?? ""),
        text(Object.entries(arm.features).map(([k, v]) => `${k}: ${Array.isArray(v) ? `[${v.length}]` : v}`).join(", ")),
      ],
    })));
  };
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
        say(`not live: ${error.message}`, true);
      }
    }
    await new Promise((done) => setTimeout(done, EVERY));
  }
}

start();
