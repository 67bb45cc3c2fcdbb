// The agent's HTTP interface.

import { parse } from "./json.js";
import { isRecording } from "./picture.js";
import * as storage from "./storage.js";

const TOKEN = "oa-token";
let token = storage.read("sessionStorage", TOKEN) ?? "";

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Removes the token from the URL, so that it is neither copied nor kept in the browser history. */
export function takeToken() {
  const address = new URL(location.href);
  const given = address.searchParams.get("token");
  if (given === null) return;
  setToken(given);
  address.searchParams.delete("token");
  history.replaceState(null, "", address);
}

/** Sets the token. One that no header can carry, such as one with curly quotes, is not sent: the server asks again. */
export function setToken(given) {
  const trimmed = given.trim();
  token = /^[\x20-\x7e]*$/.test(trimmed) ? trimmed : "";
  storage.write("sessionStorage", TOKEN, token);
}

export function request(path, options = {}) {
  const headers = new Headers(options.headers);
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

const call = (method, path, body) => send(method, path, body === undefined ? undefined : JSON.stringify(body));

/** Sends a request whose body is JSON text. */
async function send(method, path, body) {
  let response;
  try {
    const headers = body === undefined ? {} : { "content-type": "application/json" };
    response = await request(path, { method, headers, body });
  } catch {
    throw new ApiError(0, "The server cannot be reached.");
  }
  if (!response.ok) throw await failure(response);
  if (response.status === 204) return null;
  const text = await response.text();
  return text ? parse(text) : null;
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
/** Sends a prompt with the `data:` URLs of its images and recordings. */
export function prompt(id, text, urls) {
  const audio = urls.filter(isRecording);
  const images = urls.filter((url) => !isRecording(url));
  return call("POST", `${at(id)}/prompt`, { text, ...(images.length && { images }), ...(audio.length && { audio }) });
}
export const takeSteered = (id) => call("DELETE", `${at(id)}/steer`);
export const steer = (id, text) => call("POST", `${at(id)}/steer`, { text });
export const stop = (id) => call("POST", `${at(id)}/stop`, {});
/** Allows a call, with another input if there is one: JSON text, which is sent as it is. */
export const approve = (id, callId, input) =>
  send("POST", `${callAt(id, callId)}/approve`, input === undefined ? "{}" : `{"input":${input}}`);
export const deny = (id, callId, reason) => call("POST", `${callAt(id, callId)}/deny`, reason ? { reason } : {});
export const result = (id, callId, content, isError) =>
  call("POST", `${callAt(id, callId)}/result`, { content, is_error: isError });
export const eventsPath = (id) => `${at(id)}/events`;
