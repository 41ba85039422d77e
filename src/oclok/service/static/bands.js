// The expectation of an arm, as a picture in its row: the band of a single outcome (thin), that
// of its mean (thick), the index, and the outcome.
import { el, number, svg } from "/static/dom.js";

const Z = 1.96;

// Returns an axis for these arms; `range` is that of outcomes, or null. A quarantined outcome may be
// anywhere: it is drawn at the edge.
export function scale(arms, range) {
  const limits = range ?? [-Infinity, Infinity];
  const values = arms.flatMap((arm) => [...band(arm, arm.outcome_std, limits), ...band(arm, arm.std, limits), arm.index, ...(arm.status === "quarantined" ? [] : [arm.outcome])])
    .filter((value) => Number.isFinite(value));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const width = high - low || 1;
  const decimals = Math.min(Math.max(2 - Math.floor(Math.log10(width)), 0), 8);
  return { low, high, limits, decimals, at: (value) => 2 + (96 * (Math.min(Math.max(value, low), high) - low)) / width };
}

function band(arm, std, [least, most]) {
  if (!Number.isFinite(arm.mean) || !Number.isFinite(std)) return [];
  return [arm.mean - Z * std, arm.mean + Z * std].map((value) => Math.min(Math.max(value, least), most));
}

export function bands(arm, { at, limits }) {
  const [single, mean] = [band(arm, arm.outcome_std, limits), band(arm, arm.std, limits)];
  const bar = (name, [low, high], size) => (low === undefined ? [] : [svg("rect", {
    class: name, x: at(low), width: Math.max(at(high) - at(low), 0.5), y: 10 - size / 2, height: size,
  })]);
  const mark = (name, value, height) => (Number.isFinite(value) ? [svg("rect", {
    class: name, x: at(value) - 0.5, width: 1, y: 10 - height / 2, height,
  })] : []);
  return svg("svg", { class: "bands", viewBox: "0 0 100 20", preserveAspectRatio: "none", role: "img", "aria-label": describe(arm, single, mean) },
    ...bar("outcome-band", single, 4), ...bar("mean-band", mean, 10),
    ...mark("index", arm.index, 16), ...mark("outcome", arm.outcome, 20));
}

function describe(arm, single, mean) {
  if (!Number.isFinite(arm.mean)) return "nothing was expected";
  const range = ([low, high]) => (low === undefined ? "unknown" : `${number(low)} to ${number(high)}`);
  return `mean ${range(mean)}, a single outcome ${range(single)}, index ${number(arm.index)}` +
    (Number.isFinite(arm.outcome) ? `, outcome ${number(arm.outcome)}` : "");
}

export function bandsLegend() {
  return el("p", { class: "legend" }, ...[
    ["outcome-band", "95% band of a single outcome (with noise)"],
    ["mean-band", "95% band of the expected outcome (without noise)"],
    ["index", "index: what arms are compared by"], ["outcome", "outcome"],
  ].map(([name, text]) => el("span", { class: `swatch ${name}` }, text)));
}
