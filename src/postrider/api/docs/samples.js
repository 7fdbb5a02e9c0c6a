// Sample requests in curl, Node and Python, built from the examples in the API description.

import { good_response, needs_key, parameters_of, request_media } from "./document.js";
import { copy_button, make } from "./elements.js";

const LANGUAGES = { curl: curl_sample, node: node_sample, python: python_sample };
const LABELS = { curl: "curl", node: "Node", python: "Python" };
const chosen = new EventTarget();
let language = "curl";

// What a sample sends: URL, content type and body.
function request_of(method, path, operation) {
  const parameters = parameters_of(operation);
  const value = (name) => {
    const known = parameters.find((parameter) => parameter.in === "path" && parameter.name === name);
    return known && known.example !== undefined ? encodeURIComponent(known.example) : name.toUpperCase();
  };
  const query = parameters.filter((parameter) => parameter.in === "query" && parameter.required)
    .map((parameter) => `${parameter.name}=${encodeURIComponent(parameter.example)}`).join("&");
  const url = location.origin + path.replace(/{(\w+)\*?}/g, (whole, name) => value(name)) + (query ? `?${query}` : "");
  const [content_type, media] = request_media(operation) || [null, null];
  const content = good_response(operation).content || {};
  return {
    method: method.toUpperCase(), url, content_type, body: media ? media.example : undefined,
    has_key: needs_key(operation), is_json: "application/json" in content, is_stream: "text/event-stream" in content,
    is_empty: Object.keys(content).length === 0,
  };
}

function quoted_for_shell(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

// On one line if it is short.
function json_text(value) {
  const text = JSON.stringify(value);
  return text.length <= 60 ? text : JSON.stringify(value, null, 2);
}

function curl_sample(request) {
  const lines = [`curl ${request.is_stream ? "-N " : ""}${request.method === "GET" ? "" : `-X ${request.method} `}${quoted_for_shell(request.url)}`];
  if (request.has_key) lines.push('-H "Authorization: Bearer $POSTRIDER_KEY"');
  if (request.content_type) {
    const is_json = request.content_type === "application/json";
    lines.push(`-H ${quoted_for_shell(`Content-Type: ${request.content_type}`)}`);
    lines.push(is_json ? `-d ${quoted_for_shell(indented(json_text(request.body), 2))}` : `--data-binary ${quoted_for_shell(request.body)}`);
  }
  return lines.join(" \\\n  ");
}

function indented(text, by) {
  return text.replaceAll("\n", `\n${" ".repeat(by)}`);
}

function node_sample(request) {
  const options = [], headers = [];
  if (request.has_key) headers.push("    authorization: `Bearer ${process.env.POSTRIDER_KEY}`,");
  if (request.content_type) headers.push(`    "content-type": ${JSON.stringify(request.content_type)},`);
  if (request.method !== "GET") options.push(`  method: ${JSON.stringify(request.method)},`);
  if (headers.length) options.push("  headers: {", ...headers, "  },");
  if (request.content_type === "application/json") options.push(`  body: JSON.stringify(${indented(json_text(request.body), 2)}),`);
  else if (request.content_type) options.push(`  body: ${JSON.stringify(request.body)},`);
  const call = `const response = await fetch(${JSON.stringify(request.url)}${options.length ? `, {\n${options.join("\n")}\n}` : ""});`;
  const check = "if (!response.ok) throw new Error(await response.text());";
  const use = request.is_stream ? "for await (const chunk of response.body) process.stdout.write(chunk);"
    : request.is_empty ? "console.log(response.status);" : `console.log(await response.${request.is_json ? "json" : "text"}());`;
  return [call, check, use].join("\n");
}

function python_value(value, depth = 0) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const items = Array.isArray(value) ? value.map((item) => python_value(item, depth + 1))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${python_value(item, depth + 1)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const short = `${open}${items.join(", ")}${close}`;
  if (short.length <= 60 && !short.includes("\n")) return short;
  const pad = " ".repeat(4 * (depth + 1));
  return `${open}\n${items.map((item) => `${pad}${item},\n`).join("")}${pad.slice(4)}${close}`;
}

function python_sample(request) {
  const has_json = request.content_type === "application/json";
  const options = [], headers = [];
  if (request.has_key) headers.push('        "Authorization": "Bearer " + os.environ["POSTRIDER_KEY"],');
  if (request.content_type) headers.push(`        "Content-Type": ${JSON.stringify(request.content_type)},`);
  if (request.method !== "GET") options.push(`    method=${JSON.stringify(request.method)},`);
  if (headers.length) options.push("    headers={", ...headers, "    },");
  if (has_json) options.push(`    data=json.dumps(${indented(python_value(request.body), 4)}).encode(),`);
  else if (request.content_type) options.push(`    data=${JSON.stringify(request.body)}.encode(),`);
  const modules = [has_json || request.is_json ? "import json" : null, request.has_key ? "import os" : null, "import urllib.request"];
  const use = request.is_stream ? '    for line in response:\n        print(line.decode(), end="")'
    : request.is_empty ? "    print(response.status)" : request.is_json ? "    print(json.load(response))" : "    print(response.read().decode())";
  return [...modules.filter(Boolean), "",
    `request = urllib.request.Request(\n    ${JSON.stringify(request.url)},${options.length ? `\n${options.join("\n")}` : ""}\n)`,
    "with urllib.request.urlopen(request) as response:", use].join("\n");
}

function choose(name) {
  language = name;
  chosen.dispatchEvent(new Event("change"));
}

function tab(name, id) {
  const element = make("button", { type: "button", role: "tab", id: `${id}-${name}`, "aria-controls": `${id}-sample` }, LABELS[name]);
  element.addEventListener("click", () => choose(name));
  element.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const names = Object.keys(LANGUAGES);
    choose(names[(names.indexOf(name) + step + names.length) % names.length]);
    element.parentElement.querySelector('[aria-selected="true"]').focus();
    event.preventDefault();
  });
  return element;
}

// Tabs with the sample of an operation. A choice of language applies to all operations.
export function samples(method, path, operation) {
  const id = operation.operationId, request = request_of(method, path, operation);
  const tabs = make("div", { class: "tabs", role: "tablist", "aria-label": "Language" },
    ...Object.keys(LANGUAGES).map((name) => tab(name, id)));
  const code = make("code"), panel = make("pre", { role: "tabpanel", id: `${id}-sample`, tabindex: "0" }, code);
  const show = () => {
    for (const each of tabs.children) {
      const is_chosen = each.id === `${id}-${language}`;
      each.setAttribute("aria-selected", String(is_chosen));
      each.tabIndex = is_chosen ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", `${id}-${language}`);
    code.textContent = LANGUAGES[language](request);
  };
  chosen.addEventListener("change", show);
  show();
  return make("div", { class: "samples" }, make("div", { class: "strip" }, tabs, copy_button(() => code.textContent)), panel);
}
