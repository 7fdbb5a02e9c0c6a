// Sends requests to this server and shows what was sent and received. The API key stays in a variable of this page:
// it is in no storage, no URL and no sample.

import { description_of, needs_key, parameters_of, request_media, type_text } from "./document.js";
import { button, code_block, json_block, line, make } from "./elements.js";

const SHOWN_MAX = 200_000; // characters of a response
let api_key = "";

// Fields of all panels show the same key.
export function key_field(id) {
  const input = make("input", {
    id, class: "key", type: "password", autocomplete: "off", spellcheck: "false", autocapitalize: "off", placeholder: "pr_…",
  });
  input.value = api_key;
  input.addEventListener("input", () => {
    api_key = input.value.trim();
    for (const other of document.querySelectorAll("input.key")) if (other !== input) other.value = input.value;
  });
  return make("div", { class: "field" }, make("label", { for: id }, "API key"), input,
    make("small", {}, "Kept in memory until you close or reload this page."));
}

function labeled(id, parameter) {
  const input = make("input", { id, type: "text", autocomplete: "off", spellcheck: "false", autocapitalize: "off" });
  if (parameter.example !== undefined) input.placeholder = String(parameter.example);
  input.title = type_text(parameter.schema);
  const label = make("label", { for: id }, make("code", {}, parameter.name),
    parameter.required ? make("span", { class: "required" }, "required") : null);
  return { parameter, input, row: make("div", { class: "field" }, label, input, line(description_of(parameter), "small")) };
}

function body_field(id, [content_type, media]) {
  const is_json = content_type === "application/json";
  const text = is_json ? JSON.stringify(media.example, null, 2) : media.example || "";
  const area = make("textarea", { id, rows: String(Math.min(14, text.split("\n").length + 1)), spellcheck: "false" });
  area.value = text;
  return { area, content_type, row: make("div", { class: "field" }, make("label", { for: id }, "Body ", make("code", {}, content_type)), area) };
}

class InputError extends Error {
  constructor(message, input) {
    super(message);
    this.input = input;
  }
}

function value_of({ parameter, input }) {
  const value = input.value.trim();
  if (!value && parameter.required) throw new InputError(`${parameter.name} is required.`, input);
  return value;
}

function target_of(path, fields) {
  const values = (where) => fields.filter((each) => each.parameter.in === where).map((each) => [each.parameter.name, value_of(each)]);
  const of_path = new Map(values("path"));
  const target = path.replace(/{(\w+)\*?}/g, (whole, name) => encodeURIComponent(of_path.get(name)));
  const query = new URLSearchParams(values("query").filter(([, value]) => value)).toString();
  return query ? `${target}?${query}` : target;
}

// Reads the form. Throws InputError for a missing value.
function read_request({ method, path, operation, fields, body, key }) {
  if (needs_key(operation) && !api_key) throw new InputError("Enter an API key.", key.querySelector("input"));
  const target = target_of(path, fields), headers = {};
  if (api_key && needs_key(operation)) headers.authorization = `Bearer ${api_key}`;
  for (const each of fields.filter((one) => one.parameter.in === "header")) if (value_of(each)) headers[each.parameter.name.toLowerCase()] = value_of(each);
  const text = body ? body.area.value.trim() : "";
  if (text) headers["content-type"] = body.content_type;
  return { method: method.toUpperCase(), target, headers, body: text || undefined };
}

function shown_request(request) {
  const headers = Object.entries(request.headers).map(([name, value]) => `${name}: ${name === "authorization" ? "Bearer ***" : value}`);
  return [`${request.method} ${request.target}`, ...headers, ...(request.body ? ["", request.body] : [])].join("\n");
}

function shown_body(text, content_type) {
  if (!text) return make("p", { class: "soft" }, "The response has no body.");
  const is_long = text.length > SHOWN_MAX;
  if (/\bjson\b/.test(content_type) && !is_long) {
    try { return json_block(JSON.parse(text)); } catch { /* shown as it is */ }
  }
  return code_block(is_long ? `${text.slice(0, SHOWN_MAX)}\n… (${text.length.toLocaleString("en-US")} characters)` : text);
}

function shown_response(response, text, milliseconds) {
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  return make("div", {},
    make("p", { class: "outcome" }, make("b", { class: response.ok ? "ok" : "no" }, `${response.status} ${response.statusText}`.trim()),
      make("span", { class: "soft" }, ` in ${milliseconds} ms`)),
    make("details", {}, make("summary", {}, "Response headers"), code_block(headers)),
    shown_body(text, response.headers.get("content-type") || ""));
}

// Asks before a request that can change something. Resolves to whether to send it.
function confirmed(request) {
  if (request.method === "GET") return Promise.resolve(true);
  return new Promise((done) => {
    const dialog = make("dialog", { "aria-labelledby": "confirm-title" });
    const finish = (answer) => { dialog.close(); dialog.remove(); done(answer); };
    dialog.append(make("h2", { id: "confirm-title" }, "Send this request?"),
      make("p", {}, `It can change data on ${location.host}.`), make("pre", {}, make("code", {}, `${request.method} ${request.target}`)),
      make("div", { class: "actions" }, button("Cancel", () => finish(false)), button(`Send ${request.method}`, () => finish(true), { class: "primary" })));
    dialog.addEventListener("cancel", (event) => { event.preventDefault(); finish(false); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

async function exchange(request, result, stop) {
  const started = performance.now();
  result.replaceChildren(make("h5", {}, "Request"), code_block(shown_request(request)), make("p", { class: "soft" }, "Waiting for the response …"));
  let shown;
  try {
    const response = await fetch(request.target, {
      method: request.method, headers: request.headers, body: request.body, credentials: "omit", cache: "no-store", signal: stop.signal,
    });
    shown = shown_response(response, await response.text(), Math.round(performance.now() - started));
  } catch (error) {
    shown = make("p", { class: "no" }, stop.signal.aborted ? "Stopped." : `The request failed: ${error.message}`);
  }
  result.lastChild.replaceWith(make("h5", {}, "Response"), shown);
}

async function send(form, result, controls) {
  let request;
  try {
    request = read_request(form);
  } catch (error) {
    result.replaceChildren(make("p", { class: "no" }, error.message));
    if (error.input) error.input.focus();
    return;
  }
  if (!await confirmed(request)) return;
  const stop = new AbortController();
  controls.stop.onclick = () => stop.abort();
  controls.stop.hidden = false;
  controls.send.disabled = true;
  await exchange(request, result, stop);
  controls.stop.hidden = true;
  controls.send.disabled = false;
}

// The form of an operation.
export function try_panel(method, path, operation) {
  const id = `try-${operation.operationId}`, media = request_media(operation);
  const fields = parameters_of(operation).map((parameter) => labeled(`${id}-${parameter.name}`, parameter));
  const body = media ? body_field(`${id}-body`, media) : null;
  const key = needs_key(operation) ? key_field(`${id}-key`) : null;
  const result = make("div", { class: "result", "aria-live": "polite" });
  const controls = { send: button("Send request", () => send(form, result, controls), { class: "primary send" }), stop: button("Stop", () => {}) };
  const form = { method, path, operation, fields, body, key };
  controls.stop.hidden = true;
  const panel = make("div", { class: "panel" }, key, ...fields.map((each) => each.row), body && body.row,
    make("div", { class: "actions" }, controls.send, controls.stop), result);
  panel.addEventListener("keydown", (event) => {
    const is_submit = event.key === "Enter" && (event.target.tagName === "INPUT" || ((event.ctrlKey || event.metaKey) && event.target.tagName === "TEXTAREA"));
    if (is_submit && !controls.send.disabled) { event.preventDefault(); controls.send.click(); }
  });
  return panel;
}
