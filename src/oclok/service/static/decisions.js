// The list of decisions. Its rows hold still: new ones wait behind a button, and statuses change in place.
import { agentPath, ask } from "/static/api.js";
import { chip, el, number, STATUSES, table, when } from "/static/dom.js";

const PAGE = 25;
//: Seconds between two requests for the statuses of the rows shown.
const EVERY = 5;

export function decisionsTable(agent) {
  const query = new URLSearchParams(location.search);
  const search = el("input", { type: "search", value: query.get("search"), placeholder: "id begins with", "aria-label": "Search by id" });
  const status = el("select", { "aria-label": "Status of an outcome" }, el("option", { value: "" }, "any status"),
    ...Object.entries(STATUSES).map(([value, text]) => el("option", { value }, text)));
  status.value = query.get("status") ?? "";
  const fresh = el("button", { type: "button", class: "quiet", hidden: "", onclick: () => turn([]) });
  const older = el("button", { type: "button", class: "quiet", onclick: () => turn([...pages, last]) }, "Older");
  const newer = el("button", { type: "button", class: "quiet", onclick: () => turn(pages.slice(0, -1)) }, "Newer");
  const empty = el("p", { class: "note" }, "No such decisions.");
  const list = table("Latest first", [
    { name: "Decision" }, { name: "Round", right: true }, { name: "Time", right: true }, { name: "Arms", right: true }, { name: "Outcomes" },
  ]);
  const form = el("form", { class: "filters", role: "search", onsubmit: (event) => { event.preventDefault(); turn([]); } },
    search, status, fresh);
  status.addEventListener("change", () => turn([]));
  search.addEventListener("search", () => turn([]));
  const node = el("div", {}, form, list.node, empty, el("p", { class: "pager" }, newer, older));

  let pages = [], top = null, last = null, known = null, askedAt = 0;

  function turn(to) {
    pages = to;
    top = null;
    return show();
  }

  async function show() {
    askedAt = performance.now() / 1000;
    const before = pages.at(-1) ?? (top === null ? null : top + 1);
    const asked = new URLSearchParams({ most: PAGE });
    if (before) asked.set("before", before);
    if (status.value) asked.set("status", status.value);
    if (search.value.trim()) asked.set("search", search.value.trim());
    const { body: rows } = await ask(agentPath(agent, `/decisions?${asked}`));
    top = pages.length ? null : (rows[0]?.round ?? 0);
    last = rows.at(-1)?.round ?? null;
    list.fill(rows.map((row) => ({
      key: row.id, content: JSON.stringify(row),
      cells: () => [
        el("a", { href: `/agents/${encodeURIComponent(agent)}/decisions/${encodeURIComponent(row.id)}` }, row.id),
        number(row.round), when(row.time), number(row.arms), statuses(row.outcomes),
      ],
    })));
    empty.hidden = rows.length > 0;
    newer.disabled = pages.length === 0;
    older.disabled = rows.length < PAGE;
    offerNew();
  }

  function offerNew() {
    const count = !known || pages.length || status.value || search.value || top === null ? 0 : known.rounds - top;
    fresh.hidden = count <= 0;
    const text = `Show ${number(count)} new`;
    if (fresh.textContent !== text) fresh.textContent = text;
  }

  return {
    node,
    refresh: async (now, changed) => {
      known = now;
      if (!askedAt || (changed && performance.now() / 1000 - askedAt > EVERY)) await show();
      else offerNew();
    },
  };
}

// Outcomes that came as numbers, and the others as one chip per status.
export function statuses(outcomes) {
  const parts = Object.entries(STATUSES).map(([status, text]) => {
    const those = outcomes.filter((one) => one.status === status);
    if (!those.length) return null;
    const values = status === "learned" || status === "corrected" ? `: ${those.map((one) => number(one.outcome)).join(", ")}` : "";
    return chip(`${those.length} ${text}${values}`, status);
  });
  return parts.filter(Boolean);
}
