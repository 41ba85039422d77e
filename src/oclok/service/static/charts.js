// Figures by uPlot, each with a label that says in words what it shows, and a legend that names
// what is drawn. Colours follow the theme.
import { el } from "/static/dom.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const charts = new Set();
dark.addEventListener("change", () => charts.forEach((chart) => chart.redraw()));

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Returns { node, draw(label, data, options) }; `series` is uPlot's, with names of colours.
export function figure(series, { height = 220, bands = [], time = true, unit = "" } = {}) {
  const plot = el("div", { class: "plot", role: "img" });
  const node = el("figure", {}, plot, legend(series));
  let chart = null, latest = null;
  const draw = (label, data, more = {}) => {
    latest = [label, data, more];
    plot.setAttribute("aria-label", label);
    if (chart && !more.values) return chart.setData(data);
    chart?.destroy();
    chart = new uPlot(options(plot, more), data, plot);
    return chart;
  };
  const options = (box, { values }) => ({
    width: Math.max(box.clientWidth, 200), height, legend: { show: false }, bands: bands.map((band) => ({ ...band, fill: colour("--band") })),
    cursor: { drag: { x: false, y: false }, points: { size: 7 } },
    scales: { x: values ? { time, range: [-0.5, values.length - 0.5] } : { time } },
    axes: [
      axis(values ? { values: (_, splits) => splits.map((at) => values[at] ?? ""), splits: () => values.map((_, n) => n) }
        : time ? { values: times, space: 80 } : {}),
      axis({ size: 52, values: (_, splits) => splits.map((at) => `${Number(at.toPrecision(6))}${unit}`) }),
    ],
    series: [{}, ...series.map(({ stroke, fill, ...rest }) => ({
      ...rest, stroke: stroke ? colour(stroke) : "transparent", fill: fill ? colour(fill) : undefined,
    }))],
    hooks: { setCursor: [(u) => tooltip(u, series, values)] },
  });
  const axis = (more) => ({
    stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "12px system-ui", ...more,
  });
  new ResizeObserver(() => chart?.setSize({ width: Math.max(plot.clientWidth, 200), height })).observe(plot);
  charts.add({ redraw: () => { if (latest) { chart?.destroy(); chart = null; draw(...latest); } } });
  return { node, draw };
}

// Dates where the axis spans days, seconds where it spans minutes.
function times(chart, splits) {
  const span = chart.scales.x.max - chart.scales.x.min;
  const style = span > 2 * 86400 ? { month: "short", day: "numeric" }
    : { hour: "2-digit", minute: "2-digit", second: span < 600 ? "2-digit" : undefined, hourCycle: "h23" };
  return splits.map((at) => new Date(at * 1000).toLocaleString([], style));
}

function legend(series) {
  return el("figcaption", {}, ...series.filter((one) => one.label).map((one) =>
    el("span", { class: `key ${one.key ?? "line"}`, style: `--key: var(${one.swatch ?? one.stroke})` }, one.label)));
}

function tooltip(u, series, values) {
  let box = u.over.querySelector(".tip");
  if (!box) u.over.append(box = el("div", { class: "tip" }));
  const at = u.cursor.idx;
  box.hidden = at === null || at === undefined;
  if (box.hidden) return;
  const head = values ? values[at] : new Date(u.data[0][at] * 1000).toLocaleString();
  const lines = series.map((one, n) => [one.tip ?? one.label, u.data[n + 1][at]])
    .filter(([name, value]) => name && value !== null && value !== undefined)
    .map(([name, value]) => `${name}: ${Number(value.toPrecision(4))}`);
  box.replaceChildren(...[head, ...lines].map((line) => el("div", {}, String(line))));
  box.classList.toggle("left", u.cursor.left > u.over.clientWidth / 2);
}

const none = { show: false };
const dots = (...more) => uPlot.paths.points()(...more);

// Vertical lines from a series to the next one.
function whiskers(u, n, from, to) {
  const stroke = new Path2D();
  for (let at = from; at <= to; at++) {
    const x = u.valToPos(u.data[0][at], "x", true);
    stroke.moveTo(x, u.valToPos(u.data[n][at], "y", true));
    stroke.lineTo(x, u.valToPos(u.data[n + 1][at], "y", true));
  }
  return { stroke };
}

export function outcomesFigure() {
  const chart = figure([
    { tip: "expected at most", points: none },
    { tip: "expected at least", points: none },
    { label: "mean outcome expected when decided, with 95% band", tip: "expected", stroke: "--accent", width: 1.5, points: none, spanGaps: true, key: "band" },
    { label: "mean outcome seen", stroke: "--ink", fill: "--ink", width: 1, paths: dots, points: { ...none, size: 6 }, key: "dot" },
  ], { bands: [{ series: [1, 2] }], height: 300 });
  return {
    node: chart.node,
    draw: (history) => {
      const x = history.mean.map((_, n) => history.start + (n + 0.5) * history.step);
      chart.draw(`Mean outcome over time in ${x.length} steps, and the 95% band expected when the decisions were made`,
        [x, history.upper, history.lower, history.expected, history.mean]);
    },
  };
}

export function trafficFigure() {
  const chart = figure([
    { label: "decisions per minute", stroke: "--accent", fill: "--band", width: 1.5, points: none, key: "area" },
    { label: "outcomes that never came, per minute", stroke: "--bad", width: 1.5, points: none },
  ], { height: 150 });
  return {
    node: chart.node,
    draw: (history) => {
      const x = history.mean.map((_, n) => history.start + (n + 0.5) * history.step);
      const rate = (counts) => counts.map((count) => (60 * count) / history.step);
      chart.draw("Decisions and lost outcomes per minute over time", [x, rate(history.decisions), rate(history.never_came)]);
    },
  };
}

export function curveFigure(curve) {
  const isNumber = curve.values.every((value) => typeof value === "number");
  const [bars, points] = isNumber ? [{}, {}] : [
    { paths: whiskers, stroke: "--band", width: 14 }, { paths: dots, fill: "--accent", points: { ...none, size: 9 } },
  ];
  const chart = figure([
    { tip: "at most", points: none, ...bars },
    { tip: "at least", points: none },
    { tip: "expected", stroke: "--accent", width: 2, points: none, ...points },
  ], { bands: isNumber ? [{ series: [1, 2] }] : [], height: 150, time: false });
  const x = isNumber ? curve.values : curve.values.map((_, n) => n);
  const labels = isNumber ? {} : { values: curve.values.map((value) => String(value)) };
  return { node: chart.node, draw: () => chart.draw(`Expected outcome by ${curve.name}, with 95% band`, [x, curve.upper, curve.lower, curve.mean], labels) };
}
