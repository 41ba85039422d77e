// Calls of the API. An answer that has not changed is not sent again: `ask` returns the one before.

export class Refused extends Error {}
export class Missing extends Error {}
export class Unreachable extends Error {}

const kept = new Map(); // path → { tag, body }

export const agentPath = (name, rest = "") => `/v1/agents/${encodeURIComponent(name)}${rest}`;
export const key = {
  get: () => sessionStorage.getItem("key"),
  set: (value) => sessionStorage.setItem("key", value),
  clear: () => sessionStorage.removeItem("key"),
};

export async function call(method, path, body, headers = {}) {
  if (key.get()) headers.Authorization = `Bearer ${key.get()}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    return await fetch(path, { method, headers, body, cache: "no-store" });
  } catch {
    throw new Unreachable("the server does not answer");
  }
}

// Returns { body, changed }.
export async function ask(path) {
  const before = kept.get(path);
  const answer = await call("GET", path, undefined, before ? { "If-None-Match": before.tag } : {});
  if (answer.status === 304 && before) return { body: before.body, changed: false };
  const body = await read(answer);
  const tag = answer.headers.get("ETag");
  if (tag) {
    if (kept.size > 50) kept.clear();
    kept.set(path, { tag, body });
  }
  return { body, changed: true };
}

export async function send(method, path, value) {
  return read(await call(method, path, JSON.stringify(value)));
}

async function read(answer) {
  let body;
  try {
    body = await answer.json();
  } catch {
    throw new Unreachable(`the server answers ${answer.status}`);
  }
  if (answer.status === 401 || answer.status === 403) throw new Refused(body.detail);
  if (answer.status === 404) throw new Missing(body.detail);
  if (answer.status >= 500) throw new Unreachable(body.detail);
  if (!answer.ok) throw new Error(body.detail);
  return body;
}
