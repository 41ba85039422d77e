// Parts that pages are made of. Texts of agents and arms only ever become text nodes.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// `this` becomes code.
export function code(text) {
  return text.split("`").map((part, n) => (n % 2 ? el("code", {}, part) : part));
}

export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value) || Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(digits)));
}

// For columns: the same number of decimals in every row.
export function fixed(value, decimals) {
  if (value === null || !Number.isFinite(value)) return "–";
  return value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals, signDisplay: "negative" });
}

export const percent = (share) => `${number(100 * share, 2)}%`;
export const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString();

export function when(seconds) {
  const time = new Date(seconds * 1000);
  const isToday = time.toDateString() === new Date().toDateString();
  return isToday ? time.toLocaleTimeString() : time.toLocaleString();
}

export function duration(seconds) {
  for (const [unit, size] of [["days", 86400], ["hours", 3600], ["minutes", 60]]) {
    if (seconds >= 2 * size) return `${number(seconds / size)} ${unit}`;
  }
  return `${number(seconds)} s`;
}

export const STATUSES = {
  waiting: "waiting", learned: "learned", corrected: "corrected", defaulted: "default learned",
  never_came: "never came", quarantined: "quarantined",
};

export const chip = (text, kind) => el("span", { class: `chip ${kind}` }, text);

export function section(title, ...children) {
  return el("section", {}, el("h2", {}, title), ...children);
}

// Sets text only where it differs, so that screen readers and selections are left alone.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function cards(names) {
  const list = el("dl", { class: "cards" });
  const shown = new Map();
  for (const name of names) {
    const value = el("dd", {}, "–");
    const note = el("dd", { class: "note" });
    shown.set(name, [value, note]);
    list.append(el("div", {}, el("dt", {}, name), value, note));
  }
  return {
    node: list,
    set: (name, text, about = "") => shown.get(name).forEach((node, n) => say(node, n ? about : text)),
    show: (name, isShown) => { shown.get(name)[0].parentNode.hidden = !isShown; },
  };
}

// A table keeps the rows that stay, so that keyboard focus is not lost. On a phone a row is a card.
export function table(caption, columns) {
  const head = el("tr", {}, ...columns.map(({ name, right }) =>
    el("th", { scope: "col", class: right ? "right" : null }, name)));
  const body = el("tbody");
  const node = el("table", {}, el("caption", {}, caption), el("thead", {}, head), body);
  return { node, fill: (rows) => fill(body, columns, rows) };
}

function fill(body, columns, rows) {
  const known = new Map([...body.children].map((row) => [row.dataset.key, row]));
  rows.forEach(({ key, cells, kind, content }, place) => {
    let row = known.get(key);
    if (!row || row.dataset.content !== content) {
      const focused = row?.contains(document.activeElement);
      const fresh = el("tr", { "data-key": key, "data-content": content, class: kind },
        ...cells().map((cell, n) => el("td", {
          "data-label": columns[n].name, class: columns[n].right ? "right" : null,
        }, ...[cell].flat())));
      row?.replaceWith(fresh);
      row = fresh;
      if (focused) row.querySelector("a, button, summary")?.focus();
    }
    known.delete(key);
    if (body.children[place] !== row) body.insertBefore(row, body.children[place] || null);
  });
  for (const row of known.values()) row.remove();
}
