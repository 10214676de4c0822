// The API of the service: JSON in, JSON out, refusals as sentences.

export class Refusal extends Error {
  constructor(status, kind, detail) {
    super(detail);
    this.status = status;
    this.kind = kind;
  }
}

export const session = { needed: false, access: "none", label: null };
export const mayWrite = () => session.access === "read-write";
export const READ_ONLY = "This token may only read.";

/** The path of a study in the API. */
export const pathOf = (name, rest = "") => `/api/studies/${encodeURIComponent(name)}${rest}`;

async function call(method, path, body, signal, headers = {}) {
  const options = { method, signal, credentials: "same-origin", headers: { ...headers } };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "unreachable", "The service cannot be reached; it may have been stopped.");
  }
  if (response.ok) return response;
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    // no problem document: the status has to do
  }
  const refusal = new Refusal(response.status, problem.kind ?? "", sentence(problem.detail, response.status));
  if (response.status === 401 && path !== "/api/login") dispatchEvent(new CustomEvent("login-needed"));
  throw refusal;
}

function sentence(detail, status) {
  if (!detail) return `The service answered with status ${status}.`;
  const text = detail.charAt(0).toUpperCase() + detail.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

function withQuery(path, query) {
  const wanted = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return wanted.length ? `${path}?${new URLSearchParams(wanted)}` : path;
}

export async function get(path, query = {}, signal) {
  return (await call("GET", withQuery(path, query), undefined, signal)).json();
}

export async function post(path, body = {}, signal) {
  return (await call("POST", path, body, signal)).json();
}

/** Posts something that must not be done twice: if it was done already, that is no refusal. */
export async function postOnce(path, body) {
  const key = `${Date.now()}-${Math.random()}`; // crypto.randomUUID is not there without HTTPS
  return (await call("POST", path, body, undefined, { "Idempotency-Key": key })).json();
}

export async function remove(path) {
  return (await call("DELETE", path)).json();
}

/** Fetches a file and hands it to the browser to keep. */
export async function download(path, fallback, query = {}) {
  const response = await call("GET", withQuery(path, query));
  const named = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "");
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = named ? named[1] : fallback;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export async function readSession() {
  return Object.assign(session, await get("/api/session"));
}
