// The agent's HTTP interface.

const TOKEN = "oa-token";

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Removes the token from the URL, so that it is neither copied nor kept in the browser history. */
export function takeToken() {
  const address = new URL(location.href);
  const token = address.searchParams.get("token");
  if (token === null) return;
  sessionStorage.setItem(TOKEN, token);
  address.searchParams.delete("token");
  history.replaceState(null, "", address);
}

export const setToken = (token) => sessionStorage.setItem(TOKEN, token);

export function request(path, options = {}) {
  const headers = new Headers(options.headers);
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.set("authorization", `Bearer ${token}`);
  return fetch(new URL(`api/${path}`, document.baseURI), { ...options, headers, cache: "no-store" });
}

export async function failure(response) {
  let message = `The server answered ${response.status}.`;
  try {
    message = (await response.json()).error.message ?? message;
  } catch {
    // Not JSON: a proxy may have answered.
  }
  return new ApiError(response.status, message);
}

async function call(method, path, body) {
  let response;
  const isJson = body !== undefined;
  try {
    const headers = isJson ? { "content-type": "application/json" } : {};
    response = await request(path, { method, headers, body: isJson ? JSON.stringify(body) : undefined });
  } catch {
    throw new ApiError(0, "The server cannot be reached.");
  }
  if (!response.ok) throw await failure(response);
  if (response.status === 204) return null;
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

const at = (id) => `conversations/${encodeURIComponent(id)}`;
const callAt = (id, callId) => `${at(id)}/calls/${encodeURIComponent(callId)}`;

export const agent = () => call("GET", "agent");
export const conversations = (after) =>
  call("GET", `conversations?limit=50${after ? `&after=${encodeURIComponent(after)}` : ""}`);
export const create = () => call("POST", "conversations", {});
export const conversation = (id) => call("GET", at(id));
export const remove = (id) => call("DELETE", at(id));
export const rename = (id, title) => call("PATCH", at(id), { title });
export const prompt = (id, text, images) => call("POST", `${at(id)}/prompt`, images.length ? { text, images } : { text });
export const takeSteered = (id) => call("DELETE", `${at(id)}/steer`);
export const steer = (id, text) => call("POST", `${at(id)}/steer`, { text });
export const stop = (id) => call("POST", `${at(id)}/stop`, {});
export const approve = (id, callId, input) =>
  call("POST", `${callAt(id, callId)}/approve`, input === undefined ? {} : { input });
export const deny = (id, callId, reason) => call("POST", `${callAt(id, callId)}/deny`, reason ? { reason } : {});
export const result = (id, callId, content, isError) =>
  call("POST", `${callAt(id, callId)}/result`, { content, is_error: isError });
export const eventsPath = (id) => `${at(id)}/events`;
