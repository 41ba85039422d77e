// Which page this is, and how it stays up to date: it asks again every two seconds while things
// happen, and ever more seldom while nothing does.
import { Missing, Refused, Unreachable, ask, key } from "/static/api.js";
import { agentPage } from "/static/agent.js";
import { agentsPage } from "/static/agents.js";
import { decisionPage } from "/static/decision.js";
import { clock, el, say } from "/static/dom.js";

const SOON = 2000, SELDOM = 20000;
const main = document.getElementById("main");
const live = document.getElementById("live");
const banner = document.getElementById("banner");
const parts = location.pathname.split("/").filter(Boolean).map(decodeURIComponent);

function crumbs() {
  const path = document.getElementById("path");
  if (parts[1]) path.append(el("li", {}, el("a", { href: `/agents/${encodeURIComponent(parts[1])}` }, parts[1])));
  if (parts[3]) path.append(el("li", { "aria-current": "page" }, parts[3]));
  document.title = [...parts.filter((_, n) => n % 2), "oclok"].reverse().join(" · ");
}

function askForKey(reason) {
  const form = document.getElementById("key");
  const field = document.getElementById("secret");
  const wrong = document.getElementById("wrong");
  form.hidden = false;
  main.hidden = true;
  if (key.get()) {
    wrong.textContent = `${reason[0].toUpperCase()}${reason.slice(1)}.`;
    field.setAttribute("aria-invalid", "true");
    key.clear();
  }
  form.onsubmit = (event) => {
    event.preventDefault();
    key.set(field.value.trim());
    location.reload();
  };
  field.focus();
}

// A key for one agent has nothing to see on the list of all.
async function home() {
  const { body: me } = await ask("/v1/me");
  if (!me.agent) return agentsPage(main);
  location.replace(`/agents/${encodeURIComponent(me.agent)}`);
  return async () => false;
}

function lost(error, since) {
  banner.hidden = false;
  document.body.classList.add("stale");
  say(banner, since ? `No answer since ${clock(since)}: ${error.message}. The numbers below are as of then.`
    : `No answer: ${error.message}.`);
  say(live, "not live");
}

function found(now) {
  banner.hidden = true;
  document.body.classList.remove("stale");
  say(live, `updated ${clock(now)}`);
}

async function start() {
  crumbs();
  let refresh = null, since = null, pause = SOON;
  for (;;) {
    if (!document.hidden) {
      try {
        refresh ??= parts[3] ? decisionPage(main, parts[1], parts[3]) : parts[1] ? agentPage(main, parts[1]) : await home();
        const changed = await refresh();
        pause = changed ? SOON : Math.min(pause * 1.5, SELDOM);
        const isFirst = since === null;
        since = Date.now() / 1000;
        found(since);
        if (isFirst && location.hash) document.querySelector(location.hash)?.scrollIntoView();
      } catch (error) {
        if (error instanceof Refused) return askForKey(error.message);
        if (error instanceof Missing) {
          main.replaceChildren(el("h1", {}, "Not found"), el("p", {}, `${error.message}.`));
          return say(live, "");
        }
        if (!(error instanceof Unreachable)) console.error(error);
        pause = SOON;
        lost(error, since);
      }
    }
    await new Promise((done) => setTimeout(done, pause));
  }
}

start();
