// Figures, each with a label that says in words what it shows.
"use strict";

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

function drawOutcomes(node, { points, noise_std: noise }) {
  const rounds = new Map();
  points.outcome.forEach((y, n) => {
    if (y === null) return;
    const seen = rounds.get(points.round[n]) || { count: 0, y: 0, mean: 0, variance: 0 };
    seen.count += 1;
    seen.y += y;
    seen.mean += points.mean[n] ?? NaN; // nothing was expected, and nothing is drawn
    seen.variance += (points.std[n] ?? NaN) ** 2 + (noise ?? 0) ** 2;
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

function drawBands(node, arms) {
  const shown = arms.slice(0, 150);
  const x = shown.map((arm) => String(arm.id).replace(/[<>&]/g, " "));
  const trace = (chosen, name, color) => ({
    x, y: shown.map((arm) => (arm.chosen === chosen ? arm.mean : null)), name, mode: "markers",
    marker: { color, size: 8 },
    error_y: { type: "data", array: shown.map((arm) => 2 * (arm.std || 0)), color } });
  draw(node, `Mean and 95% band of ${shown.length} arms, best index first`, [
    trace(true, "chosen", colour("--accent")), trace(false, "not chosen", colour("--soft")),
    { x, y: shown.map((arm) => arm.index), mode: "markers", name: "index",
      marker: { symbol: "line-ew-open", size: 12, line: { width: 2.5 }, color: colour("--warn") } },
    { x, y: shown.map((arm) => arm.outcome), mode: "markers", name: "outcome",
      marker: { symbol: "x", size: 9, color: colour("--good") } },
  ], { showlegend: true, legend: { orientation: "h", y: 1.15 }, xaxis: { type: "category" },
    yaxis: { title: { text: "outcome" } } });
}
