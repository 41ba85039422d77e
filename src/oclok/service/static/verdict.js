// One verdict per agent, by one function of the server; here it only gets a colour and a word.
import { code, el } from "/static/dom.js";

const WORDS = { green: "Well", amber: "Look into it", red: "Broken", grey: "Too early" };

//: Where to look, by the kind of a finding: a filter of decisions, or a part of the page.
const LINKS = {
  quarantine: ["?status=quarantined#decisions", "Show these decisions"],
  lost: ["?status=never_came#decisions", "Show these decisions"],
  late: ["?status=waiting#decisions", "Show these decisions"],
  drift: ["?range=day#outcomes", "Show outcomes over time"],
  calibration: ["#calibration", "Show calibration"],
  range: ["#learned", "Show features"], category: ["#learned", "Show features"],
  constant: ["#learned", "Show features"], ignored: ["#settings", "Show settings"],
};

export function verdictChip({ level, summary }) {
  const isUnknown = level === "grey" && !summary.startsWith(WORDS.grey);
  return el("span", { class: `chip verdict ${level}` }, isUnknown ? "Unknown" : WORDS[level]);
}

export function verdictPanel() {
  const node = el("section", { class: "verdict-panel", "aria-label": "Is it well?" });
  return {
    node,
    show: ({ verdict, health }) => {
      const others = health.slice(verdict.kind ? 1 : 0); // the worst, which comes first, is the verdict
      node.className = `verdict-panel ${verdict.level}`;
      node.replaceChildren(
        el("p", { class: "summary" }, verdictChip(verdict), " ", verdict.summary),
        ...(verdict.action ? [el("p", {}, ...code(verdict.action), " ", where(verdict.kind))] : []),
        ...(others.length ? [el("details", {}, el("summary", {}, `${others.length} more to know`),
          el("ul", {}, ...others.map(({ kind, severity, message, advice }) =>
            el("li", { class: severity }, `${message}. `, ...code(advice), " ", where(kind)))))] : []),
      );
    },
  };
}

function where(kind) {
  const [href, text] = LINKS[kind] ?? [];
  return href ? el("a", { href: href.startsWith("#") ? location.search + href : href }, text) : "";
}
