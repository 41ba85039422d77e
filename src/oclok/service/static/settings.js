// The settings of an agent, and the features that it knows.
import { duration, el, number, when } from "/static/dom.js";

export function settingsList(node, { settings, created, rounds, events, features }) {
  const { kind, ...fields } = settings.oracle;
  const oracle = `${kind}(${Object.entries(fields).map(([name, value]) => `${name}: ${brief(value)}`).join(", ")})`;
  const range = settings.outcome_range;
  const known = features ? Object.entries(features).map(([name, { kind: what }]) => `${name} (${what})`).join(", ") : "taken from the first arms";
  const rows = [
    ["Oracle", oracle], ["Mode", settings.mode],
    ["Outcome range", range ? `${number(range[0])} to ${number(range[1])}` : "any; implausible outcomes are quarantined"],
    ["Deadline", settings.deadline ? duration(settings.deadline) : "none"],
    ["Default outcome", settings.default_outcome ?? "none"], ["Features", known],
    ...Object.entries(settings).filter(([name, value]) => !SHOWN.has(name) && value !== null).map(([name, value]) => [title(name), brief(value)]),
    ["Created", when(created)], ["Decisions", number(rounds)], ["Events in the log", number(events)],
  ];
  node.replaceChildren(...rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value)))));
}

const SHOWN = new Set(["oracle", "mode", "outcome_range", "deadline", "default_outcome", "features"]);
const title = (name) => name[0].toUpperCase() + name.slice(1).replaceAll("_", " ");

function brief(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
