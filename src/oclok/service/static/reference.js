// The reference of the API, made from its OpenAPI description: every call with examples, to be tried here.
import { call, key } from "/static/api.js";
import { code, el, section } from "/static/dom.js";

const main = document.getElementById("main");
let schemas = {};

const json = (value) => JSON.stringify(value, null, 1);

// Returns an example of what a schema describes: every schema with a name has one.
function example(schema) {
  if (schema.type === "array") return [example(schema.items)];
  return (schema.$ref ? schemas[schema.$ref.split("/").at(-1)] : schema).examples?.[0] ?? "text";
}

// Returns the type of a schema in a few words, with links to the schemas that have names.
function type(schema) {
  if (schema.$ref) {
    const name = schema.$ref.split("/").at(-1);
    return [el("a", { href: `#${name}` }, name)];
  }
  const options = schema.anyOf ?? schema.oneOf;
  if (options) return options.flatMap((option, n) => [...(n ? [" or "] : []), ...type(option)]);
  if (schema.type === "array") return ["list of ", ...(schema.items ? type(schema.items) : ["anything"])];
  if (typeof schema.additionalProperties === "object") return ["by name: ", ...type(schema.additionalProperties)];
  if (schema.enum) return [schema.enum.map((value) => json(value)).join(" or ")];
  if ("const" in schema) return [json(schema.const)];
  return [schema.type ?? "anything"];
}

function fields(schema) {
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) => [
    el("dt", {}, name, schema.required?.includes(name) ? "" : " (optional)"),
    el("dd", {}, ...type(field), ...code(field.description ? `. ${field.description}` : "")),
  ]);
  return el("dl", { class: "fields" }, ...rows.flat());
}

function operation(method, path, spec) {
  const body = spec.requestBody?.content?.["application/json"]?.schema;
  const parameters = (spec.parameters ?? []).filter((one) => one.in !== "header");
  const answers = (isWanted) => el("ul", {}, ...Object.entries(spec.responses).filter(([status]) => isWanted(status)).map(answer));
  const node = section("", el("p", {}, ...code(spec.description ?? spec.summary)),
    ...(body ? [el("p", {}, "Takes ", ...type(body))] : []), answers((status) => status < 400),
    el("details", {}, el("summary", {}, "Errors"), answers((status) => status >= 400)), form(method, path, parameters, body));
  node.id = spec.operationId;
  node.firstChild.replaceWith(el("h3", {}, el("span", { class: `method ${method}` }, method.toUpperCase()), el("code", {}, path), el("span", { class: "note" }, spec.operationId)));
  return node;
}

function answer([status, { description, content }]) {
  const schema = Object.values(content ?? {})[0]?.schema;
  const isGood = status < 300 && schema && Object.keys(schema).length;
  return el("li", {}, el("strong", {}, status), ` ${description === "Successful Response" ? "" : description} `, ...(schema ? type(schema) : []),
    isGood ? el("details", {}, el("summary", {}, "Example"), el("pre", { tabindex: "0" }, json(example(schema)))) : null);
}

function form(method, path, parameters, body) {
  const inputs = parameters.map((one) => [one, el("input", { name: one.name, required: one.required ? "" : null })]);
  const text = body ? el("textarea", { spellcheck: "false" }) : null;
  if (text) text.value = json(example(body));
  const result = el("pre", { tabindex: "0", hidden: "", role: "status" });
  const submit = async (event) => {
    event.preventDefault();
    let url = path;
    const query = new URLSearchParams();
    for (const [one, input] of inputs) {
      if (one.in === "path") url = url.replace(`{${one.name}}`, encodeURIComponent(input.value));
      else if (input.value) query.set(one.name, input.value);
    }
    result.hidden = false;
    result.textContent = "…";
    try {
      const got = await call(method.toUpperCase(), url + (query.size ? `?${query}` : ""), text?.value);
      const said = await got.text();
      result.textContent = `${got.status} ${got.statusText}\n${pretty(said)}`;
    } catch (error) {
      result.textContent = error.message;
    }
  };
  return el("details", {}, el("summary", {}, "Try it"), el("form", { class: "try", onsubmit: submit },
    ...inputs.map(([one, input]) => el("label", {}, `${one.name}${one.required ? "" : " (optional)"}`, input)),
    ...(text ? [el("label", {}, "Body", text)] : []), el("button", {}, "Send"), result));
}

function pretty(text) {
  try {
    return json(JSON.parse(text));
  } catch {
    return text;
  }
}

function keyField() {
  const input = el("input", { type: "password", autocomplete: "off", value: key.get() ?? "" });
  input.addEventListener("change", () => (input.value ? key.set(input.value) : key.clear()));
  return el("label", {}, "Key for the calls on this page ", input);
}

async function start() {
  const description = await (await fetch("/openapi.json")).json();
  schemas = description.components.schemas;
  const calls = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, spec]) => ({ path, method, spec })));
  const tags = [...new Set(calls.map(({ spec }) => spec.tags?.[0] ?? "other"))];
  main.append(el("h1", {}, "API"), el("p", {}, `${description.info.description} Version ${description.info.version}. For tools: `,
    el("a", { href: "/openapi.json" }, "openapi.json"), ". Keys go into the header ", el("code", {}, "Authorization: Bearer oclok_…"), "; errors are problems (RFC 9457)."), keyField());
  for (const tag of tags) {
    const those = calls.filter(({ spec }) => (spec.tags?.[0] ?? "other") === tag);
    const about = description.tags?.find(({ name }) => name === tag)?.description ?? "";
    main.append(el("h2", {}, tag[0].toUpperCase() + tag.slice(1)), el("p", {}, about), el("ul", { class: "calls" }, ...those.map(({ path, method, spec }) =>
      el("li", {}, el("a", { href: `#${spec.operationId}` }, `${method.toUpperCase()} ${path}`)))), ...those.map(({ path, method, spec }) => operation(method, path, spec)));
  }
  main.append(el("h2", {}, "Schemas"));
  for (const [name, schema] of Object.entries(schemas)) {
    const node = section(name, el("p", {}, ...code(schema.description ?? "")), fields(schema));
    node.id = name;
    main.append(node);
  }
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

start();
