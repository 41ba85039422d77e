// An agent: is it well, is it worth it, what does it do; then what it has learned, its settings
// and its decisions.
import { agentPath, ask } from "/static/api.js";
import { curveFigure, outcomesFigure, trafficFigure } from "/static/charts.js";
import { decisionsTable } from "/static/decisions.js";
import { cards, duration, el, number, percent, section } from "/static/dom.js";
import { settingsList } from "/static/settings.js";
import { verdictPanel } from "/static/verdict.js";

const RANGES = { hour: "Last hour", day: "Last day", week: "Last week", all: "All" };
//: Seconds between two requests for charts, and for what was learned.
const CHARTS_EVERY = 10, LEARNED_EVERY = 60;

export function agentPage(main, name) {
  const verdict = verdictPanel();
  const worth = cards(["Lift", "Mean outcome", "Left on the table", "Next decision"]);
  const work = cards(["Decisions", "Open", "Late", "Never came", "Quarantined"]);
  const outcomes = outcomesFigure(), traffic = trafficFigure();
  const curves = el("div", { class: "curves" });
  const kernels = el("details", {}, el("summary", {}, "The model itself"), el("ul", { class: "kernels" }));
  const calibration = el("div");
  const settings = el("dl", { class: "settings" });
  const decisions = decisionsTable(name);
  let range = new URLSearchParams(location.search).get("range");
  if (!(range in RANGES)) range = "hour";
  const picker = rangePicker(range, (chosen) => { range = chosen; chartsAt = -Infinity; refresh(); });
  worth.show("Lift", false);
  main.append(
    el("h1", {}, name), verdict.node, picker,
    el("div", { class: "pair" }, labelled("outcomes", section("Is it worth it?", worth.node, outcomes.node)),
      section("What does it do?", work.node, traffic.node)),
    labelled("learned", section("What it has learned", curves, kernels)),
    labelled("calibration", section("Calibration", calibration)), labelled("settings", section("Settings", settings)),
    labelled("decisions", section("Decisions", decisions.node)),
  );
  let chartsAt = -Infinity, learnedAt = -Infinity;

  async function refresh() {
    const { body: agent, changed } = await ask(agentPath(name));
    if (changed) showAgent(agent);
    const now = performance.now() / 1000;
    if ((changed || chartsAt < 0) && now - chartsAt > CHARTS_EVERY) {
      chartsAt = now;
      const asked = range;
      const { body: history, changed: isNew } = await ask(agentPath(name, `/history?range=${range}`));
      if (asked === range && (isNew || picker.dataset.shown !== range)) showHistory(history);
      picker.dataset.shown = range;
      await showLift(agent);
    }
    await decisions.refresh(agent, changed);
    if ((changed || learnedAt < 0) && now - learnedAt > LEARNED_EVERY) {
      learnedAt = now;
      const { body: learned, changed: isNew } = await ask(agentPath(name, "/features"));
      if (isNew) showLearned(learned, agent.settings.explain);
    }
    return changed;
  }

  function showAgent(agent) {
    verdict.show(agent);
    const { regret } = agent;
    const per = (value) => number(value / regret.rounds);
    worth.set("Left on the table", regret ? `${per(regret.lower)} to ${per(regret.upper)}` : "–",
      regret ? "per decision, in units of outcome: what the best sets would have earned beyond those chosen, " +
        `as the model sees its first ${number(regret.rounds)} decisions now (95%). It is estimated anew as the model learns.`
        : agent.learned + agent.observed ? "is being estimated" : "estimated once there are outcomes");
    worth.set("Next decision", regret ? number(regret.per_round) : "–", regret ? "expected to be left on the table by one more" : "");
    work.set("Open", number(agent.open_decisions), `decisions; outcomes waiting: ${number(agent.waiting)}`);
    work.set("Late", number(agent.late), agent.settings.deadline
      ? `decisions past the deadline of ${duration(agent.settings.deadline)}` : "decisions that wait unusually long");
    showCalibration(calibration, agent.calibration);
    settingsList(settings, agent);
  }

  function showHistory(history) {
    const { total } = history;
    const span = RANGES[history.range].toLowerCase();
    worth.set("Mean outcome", number(total.mean_outcome), total.mean_error === null ? span
      : `±${number(1.96 * total.mean_error, 2)} (95%), ${span}`);
    work.set("Decisions", `${number(total.per_minute)} per minute`, `${number(total.decisions)}, ${span}`);
    const settled = total.learned + total.corrected + total.defaulted + total.quarantined + total.never_came;
    work.set("Never came", number(total.never_came), settled ? `${percent(total.never_came / settled)} of settled outcomes, ${span}` : span);
    work.set("Quarantined", number(total.quarantined), span);
    outcomes.draw(history);
    traffic.draw(history);
  }

  // Beyond a control group where there is one, else, in shadow mode, beyond the system that decides.
  async function showLift({ settings: { holdout, guard, mode } }) {
    if (!holdout && !guard && mode !== "shadow") return;
    const { body: lift } = await ask(agentPath(name, mode === "shadow" && !holdout ? "/comparison" : "/lift"));
    const signed = (value) => (value > 0 ? "+" : "") + number(value);
    const isKnown = lift.lower !== null && lift.upper !== null && lift.verdict !== "too early";
    const than = lift.baseline ? `the baseline (${number(lift.baseline.decisions)} decisions)` : "the system that decides, as the model expects";
    const guarded = lift.guard ? ` The guard stepped in ${number(lift.guard.stepped_in)} times.` : "";
    worth.show("Lift", true);
    worth.set("Lift", isKnown ? `${signed(lift.lower)} to ${signed(lift.upper)}` : "Too early",
      `outcome per decision beyond ${than}, ${percent(lift.level)} interval.${guarded}`);
  }

  function showLearned({ features, kernels: members }, isExplained) {
    const none = isExplained ? "Nothing yet: it learns from outcomes." : "Not shown: the setting explain is off.";
    curves.replaceChildren(...(features.length ? [] : [el("p", { class: "note" }, none)]));
    for (const [place, feature] of features.entries()) {
      const meter = el("div", { class: "meter", role: "img", "aria-label": `relevance ${percent(feature.relevance)}` },
        el("div", { style: `width: ${100 * feature.relevance}%` }));
      const box = el("div", { class: "feature" }, el("h3", {}, feature.name, " ", el("span", { class: "note" }, percent(feature.relevance))), meter);
      curves.append(box);
      if (place < 4) {
        const chart = curveFigure(feature);
        box.append(chart.node);
        chart.draw();
      }
    }
    kernels.lastChild.replaceChildren(...members.map((member) => el("li", {},
      `${percent(member.weight)}: `, el("code", {}, member.kernel), `, noise ±${number(member.noise_std)}`)));
    kernels.hidden = members.length === 0;
  }

  return refresh;
}

const labelled = (id, node) => { node.id = id; return node; };

function rangePicker(chosen, choose) {
  const radio = ([value, text]) => {
    const input = el("input", { type: "radio", name: "range", value, onchange: () => choose(value) });
    input.checked = value === chosen;
    return el("label", {}, input, el("span", {}, text));
  };
  return el("fieldset", { class: "range" }, el("legend", {}, "Time range"), ...Object.entries(RANGES).map(radio));
}

function showCalibration(node, { count, coverage, verdict }) {
  const text = {
    "too early": `Too early: ${number(count)} outcomes were foreseen so far.`,
    neither: "The model's bands hold as many outcomes as they should.",
    overconfident: "The model is overconfident: its bands hold fewer outcomes than they should.",
    underconfident: "The model is cautious: its bands hold more outcomes than they need to. It explores a little more for it, and does no harm.",
  }[verdict] ?? verdict;
  const rows = Object.entries(coverage).filter(([, share]) => share !== null).map(([level, share]) =>
    el("li", {}, `${percent(share)} of outcomes were in the ${percent(Number(level))} band`));
  node.replaceChildren(el("p", {}, text), el("ul", {}, ...rows), el("p", { class: "note" }, `${number(count)} outcomes, each judged just before it was learned.`));
}
