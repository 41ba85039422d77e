// Parts that pages are made of. Texts of agents and arms only ever become text nodes.
"use strict";

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value) || Math.abs(value) >= 10 ** Math.min(digits, 3)) return Math.round(value).toLocaleString("en");
  return value.toPrecision(digits);
}

function when(seconds) {
  return new Date(seconds * 1000).toLocaleString();
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
const percent = (share) => ({ text: `${number(100 * share, 3)}%`, number: true });
const link = (value, href) => ({ text: String(value), href });

function section(title, ...children) {
  return el("section", {}, el("h2", {}, title), ...children);
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

