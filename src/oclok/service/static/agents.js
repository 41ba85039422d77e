// The first page: all agents, how each of them is, and how long calls take.
import { ask, agentPath } from "/static/api.js";
import { verdictChip } from "/static/verdict.js";
import { el, number, section, table } from "/static/dom.js";

//: Agents on a page.
const MOST = 100;

export function agentsPage(main) {
  const list = table("How each of them is", [
    { name: "Agent" }, { name: "Verdict" }, { name: "Decisions", right: true }, { name: "Outcomes learned", right: true },
    { name: "Waiting", right: true }, { name: "Late", right: true }, { name: "Never came", right: true },
  ]);
  const speed = table("Time per call of the process that answered, over its latest 1,000 calls", [
    { name: "Call" }, { name: "Calls", right: true }, { name: "Median", right: true }, { name: "99%", right: true },
  ]);
  const after = new URLSearchParams(location.search).get("after") ?? "";
  const more = el("div", { class: "pager" });
  const agents = el("section", { "aria-label": "Agents" }, list.node, more);
  const empty = firstSteps();
  const server = section("Server", speed.node);
  main.append(el("h1", {}, "Agents"), empty, agents, server);
  empty.hidden = agents.hidden = server.hidden = true;
  return async () => {
    const { body, changed } = await ask(`/v1/agents?most=${MOST}&after=${encodeURIComponent(after)}`);
    empty.hidden = body.length > 0 || after !== "";
    more.replaceChildren(...(body.length < MOST ? [] : [el("a", { href: `/?after=${encodeURIComponent(body.at(-1).name)}` }, "More agents")]));
    agents.hidden = server.hidden = !empty.hidden;
    if (!changed) return false;
    list.fill(body.map((agent) => ({
      key: agent.name,
      content: JSON.stringify(agent),
      cells: () => [
        el("a", { href: `/agents/${encodeURIComponent(agent.name)}` }, agent.name),
        [verdictChip(agent.verdict), " ", agent.verdict.level === "green" ? "" : agent.verdict.summary],
        number(agent.rounds), number(agent.learned), number(agent.waiting), number(agent.late), number(agent.never_came),
      ],
    })));
    const { calls } = (await ask("/v1/server")).body;
    const milliseconds = (seconds) => `${number(seconds * 1000)} ms`;
    speed.fill(calls.map((seen) => ({
      key: seen.call, content: JSON.stringify(seen),
      cells: () => [seen.call, number(seen.count), milliseconds(seen.median), milliseconds(seen.p99)],
    })));
    return true;
  };
}

function firstSteps() {
  const header = `-H 'Content-Type: application/json'`;
  const make = { oracle: { kind: "TopK", k: 1 } };
  const decide = { id: "first", arms: [{ id: "a", features: { price: 3 } }, { id: "b", features: { price: 5 } }] };
  const learn = [{ decision: "first", arm: "a", outcome: 1 }];
  const url = location.origin + agentPath("first");
  const text = [
    `curl -X PUT ${url} ${header} \\\n  -d '${JSON.stringify(make)}'`,
    `curl -X POST ${url}/decisions ${header} \\\n  -d '${JSON.stringify(decide)}'`,
    `curl -X POST ${url}/outcomes ${header} \\\n  -d '${JSON.stringify(learn)}'`,
  ].join("\n");
  const copy = el("button", {
    type: "button",
    onclick: async () => {
      await navigator.clipboard?.writeText(text);
      copy.textContent = "Copied";
    },
  }, "Copy");
  return section("No agents yet", el("p", {}, "These calls make an agent, let it decide, and send it an outcome. With keys, add -H 'Authorization: Bearer oclok_…'."),
    el("pre", { tabindex: "0" }, text), copy);
}
