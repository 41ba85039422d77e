// A client of the service in 30 lines, with types made by openapi-typescript from its description.
import type { components, paths } from "./api";

type Schemas = components["schemas"];
type Agent = paths["/v1/agents/{agent}"]["get"]["responses"]["200"]["content"]["application/json"];
declare const process: { argv: string[] };

async function call<Answer>(method: string, path: string, body?: object): Promise<Answer> {
  const answer = await fetch(`${process.argv[2]}/v1/agents/node${path}`, {
    method, headers: { "Content-Type": "application/json" }, body: body ? JSON.stringify(body) : null,
  });
  if (!answer.ok) throw new Error(((await answer.json()) as Schemas["Problem"]).detail);
  return (await answer.json()) as Answer;
}

const oracle: Schemas["Knapsack"] = { kind: "Knapsack", costs: "price", budget: 5 };
await call<Agent>("PUT", "", { oracle, outcome_range: [0, 9] } satisfies Partial<Schemas["Settings"]>);
for (let round = 0; round < 3; round++) {
  const arms: Schemas["Arm"][] = [2, 3, 4].map((price) => ({ id: `p${price}`, features: { price } }));
  const decision = await call<Schemas["DecisionAnswer"]>("POST", "/decisions", { arms });
  const items = decision.chosen.map(({ id }) => ({ decision: decision.id, arm: id, outcome: Number(String(id).slice(1)) }));
  const told = await call<Schemas["OutcomesAnswer"]>("POST", "/outcomes", items);
  if (told.learned !== items.length) throw new Error(told.rejected[0]?.reason ?? "nothing was learned");
}
const { verdict, calibration, settings, rounds }: Agent = await call<Agent>("GET", "");
const level: "red" | "amber" | "green" | "grey" = verdict.level, count: number = calibration.count;
const limits: string = settings.oracle.kind === "Knapsack" ? String(settings.oracle.budget) : "none";
console.log(JSON.stringify({ level, count: typeof count, limits, rounds }));
