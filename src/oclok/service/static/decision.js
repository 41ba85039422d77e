// One decision: expectation and outcome of each arm, and why it was chosen or not.
import { agentPath, ask, send } from "/static/api.js";
import { bands, bandsLegend, scale } from "/static/bands.js";
import { chip, el, fixed, number, section, STATUSES, table, when } from "/static/dom.js";

const SHOWN = 100;

export function decisionPage(main, agent, id) {
  const path = agentPath(agent, `/decisions/${encodeURIComponent(id)}`);
  const about = el("p");
  const wrong = el("p", { class: "wrong", role: "alert" });
  const list = table("Arms that were offered, largest index first", [
    { name: "Arm" }, { name: "Expected outcome, with bands" }, { name: "Mean", right: true }, { name: "±95% of mean", right: true },
    { name: "±95% of an outcome", right: true }, { name: "Index", right: true }, { name: "Outcome", right: true }, { name: "Why" },
  ]);
  const more = el("button", { type: "button", class: "quiet", hidden: "", onclick: () => { limit = Infinity; show(); } });
  main.append(el("h1", {}, `Decision ${id}`), about, wrong, section("Arms", bandsLegend(), list.node, more));
  let decision = null, may = [], limit = SHOWN;

  function show() {
    const { arms } = decision;
    about.textContent = `Round ${number(decision.round)}, ${when(decision.time)}. ${decision.chosen.length} of ${arms.length} arms chosen` +
      (decision.is_exact ? ", provably as the exact posterior would." : ".") +
      (arms.some((arm) => arm.reason) ? "" : " There are no reasons: it was long ago, or the setting explain is off.");
    const shown = arms.slice(0, limit);
    const axis = scale(shown, decision.outcome_range);
    list.fill(shown.map((arm) => ({
      key: String(arm.id), kind: arm.chosen ? "chosen" : "", content: JSON.stringify([arm, axis.low, axis.high, may]),
      cells: () => [
        [String(arm.id), ...(arm.chosen ? [" ", chip("chosen", "chosen")] : []), details(arm)], bands(arm, axis), fixed(arm.mean, axis.decimals), wide(arm.std, axis),
        wide(arm.outcome_std, axis), fixed(arm.index, axis.decimals), outcome(arm, axis), arm.reason ?? "",
      ],
    })));
    more.hidden = arms.length <= limit;
    more.textContent = `Show all ${number(arms.length)} arms`;
  }

  const wide = (std, axis) => fixed(std === null ? null : 1.96 * std, axis.decimals);

  function outcome(arm, axis) {
    if (!arm.chosen) return "";
    const parts = [arm.outcome === null ? "" : fixed(arm.outcome, axis.decimals), " ", chip(STATUSES[arm.status], arm.status)];
    if (arm.status === "quarantined" && may.some((role) => role === "learn" || role === "admin")) {
      parts.push(" ", el("button", { type: "button", onclick: () => accept(arm.id) }, "Accept"));
    }
    return parts;
  }

  async function accept(arm) {
    wrong.textContent = "";
    try {
      const answer = await send("POST", agentPath(agent, "/outcomes"), [{ decision: id, arm, accept: true }]);
      if (answer.rejected.length) wrong.textContent = answer.rejected[0].reason;
    } catch (error) {
      wrong.textContent = error.message;
    }
    await refresh();
  }

  function details(arm) {
    const features = Object.entries(arm.features).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, feature(value))));
    const evidence = arm.evidence.map((near) => el("li", {},
      el("a", { href: `/agents/${encodeURIComponent(agent)}/decisions/${encodeURIComponent(near.decision)}` }, String(near.arm)),
      `: ${number(near.outcome)}, distance ${number(near.distance, 2)}`));
    return el("details", {}, el("summary", {}, "Details"), el("dl", { class: "settings" }, ...features),
      ...(evidence.length ? [el("p", { class: "note" }, "Nearest outcomes that were learned:"), el("ul", {}, ...evidence)] : []));
  }

  async function refresh() {
    const [answer, me] = await Promise.all([ask(path), ask("/v1/me")]);
    const now = JSON.stringify([answer.body, me.body]);
    const changed = now !== refresh.before;
    refresh.before = now;
    decision = answer.body;
    may = me.body.roles;
    if (changed) show();
    return changed;
  }
  return refresh;
}

function feature(value) {
  if (Array.isArray(value)) return `[${value.length} numbers]`;
  return typeof value === "number" ? number(value, 6) : String(value);
}
