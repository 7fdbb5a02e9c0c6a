// Makes the page from /openapi.json. Everything of the document is put in as text, never as HTML.
"use strict";

const WHO = {
  everyone: "no key", authenticated: "any key", read: "reader, operator, admin", publish: "publisher, operator, admin",
  operate: "operator, admin", operators: "operator, admin; not bound to a tenant", administer: "admin",
};
let document_;

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

// `code` in a sentence.
function sentence(text, tag = "p") {
  const element = make(tag);
  String(text || "").split("`").forEach((part, i) => element.append(i % 2 ? make("code", {}, part) : part));
  return element;
}

function at(value) {
  let found = value, steps = 0;
  while (found && found.$ref && ++steps < 20)
    found = found.$ref.slice(2).split("/").reduce((place, name) => place[name], document_);
  return found || {};
}

function name_of(schema) {
  return schema && schema.$ref ? schema.$ref.split("/").pop() : null;
}

// Fields of a schema with those of allOf.
function fields_of(schema) {
  const whole = at(schema);
  const fields = {}, required = new Set(whole.required || []);
  for (const part of whole.allOf || []) {
    const below = fields_of(part);
    Object.assign(fields, below.fields);
    below.required.forEach((name) => required.add(name));
  }
  Object.assign(fields, whole.properties || {});
  return { fields, required };
}

function type_text(schema) {
  const whole = at(schema);
  if (whole.enum) return whole.enum.map((value) => (value === null ? "null" : String(value))).join(" | ");
  if (whole.const !== undefined) return String(whole.const);
  if (whole.oneOf || whole.anyOf) return (whole.oneOf || whole.anyOf).map(type_text).join(" | ");
  let type = [].concat(whole.type || (whole.properties || whole.allOf ? "object" : "any")).join(" | ");
  if (whole.items) type = type.replace("array", `array of ${name_of(whole.items) || type_text(whole.items)}`);
  if (whole.format === "date-time") type = type.replace("string", "time");
  const limits = [];
  if (whole.minimum !== undefined && whole.maximum !== undefined) limits.push(`${whole.minimum} to ${whole.maximum}`);
  if (whole.maxLength) limits.push(`at most ${whole.maxLength} characters`);
  if (whole.maxItems) limits.push(`at most ${whole.maxItems}`);
  if (whole.default !== undefined) limits.push(`default ${JSON.stringify(whole.default)}`);
  return limits.length ? `${type}, ${limits.join(", ")}` : type;
}

// An example: the schema's own, or put together from its fields.
function example_of(schema, depth = 0) {
  const whole = at(schema);
  if (whole.examples) return whole.examples[0];
  if (whole.example !== undefined) return whole.example;
  if (whole.default !== undefined) return whole.default;
  if (whole.const !== undefined) return whole.const;
  if (whole.enum) return whole.enum[0];
  if (depth > 6) return null;
  if (whole.oneOf || whole.anyOf) return example_of((whole.oneOf || whole.anyOf)[0], depth + 1);
  const type = [].concat(whole.type || (whole.properties || whole.allOf ? "object" : "null"))[0];
  if (type === "array") return whole.items ? [example_of(whole.items, depth + 1)] : [];
  if (type === "object") {
    // A base that has an example is more telling than its single fields.
    const result = {};
    const { fields } = fields_of(whole);
    for (const [name, field] of Object.entries(fields)) result[name] = example_of(field, depth + 1);
    return result;
  }
  if (type === "integer" || type === "number") return whole.minimum || 0;
  if (type === "boolean") return true;
  if (type === "string") return whole.format === "date-time" ? "2026-04-08T10:15:30Z" : "…";
  return null;
}

function media_example(media) {
  return media.example !== undefined ? media.example : example_of(media.schema || {});
}

function colored(text) {
  const block = make("pre");
  const code = make("code");
  const token = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/g;
  let end = 0;
  for (const match of text.matchAll(token)) {
    code.append(text.slice(end, match.index));
    const kind = match[2] ? "json-key" : match[1] ? "json-string" : "json-number";
    code.append(make("span", { class: kind }, match[1] || match[3]), match[2] || "");
    end = match.index + match[0].length;
  }
  code.append(text.slice(end));
  block.append(code);
  return with_copy(block, text);
}

function with_copy(block, text) {
  const button = make("button", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  block.append(button);
  return block;
}

function plain(text) {
  return with_copy(make("pre", { class: "wrap" }, make("code", {}, text)), text);
}

function field_rows(table, schema, prefix, depth) {
  const { fields, required } = fields_of(schema);
  for (const [name, field] of Object.entries(fields)) {
    const whole = at(field);
    const about = make("td", {}, make("span", { class: "type" }, type_text(field)));
    if (whole.description) about.append(make("br"), sentence(whole.description, "span"));
    table.append(make("tr", {}, make("td", {}, make("code", {}, prefix + name), " ",
      required.has(name) ? make("span", { class: "must" }, "required") : ""), about));
    const items = at(whole.items || {});
    if (depth < 2 && items.properties && !name_of(whole.items)) field_rows(table, items, `${prefix}${name}[].`, depth + 1);
    else if (depth < 2 && whole.properties && !name_of(field)) field_rows(table, whole, `${prefix}${name}.`, depth + 1);
  }
}

function fields_table(schema) {
  const whole = at(schema);
  const table = make("table");
  field_rows(table, whole.type === "array" ? whole.items : schema, whole.type === "array" ? "[]." : "", 0);
  return table.children.length ? table : null;
}

function parameters_table(parameters) {
  const table = make("table");
  for (const parameter of parameters) {
    const about = make("td", {}, make("span", { class: "type" }, `${parameter.in}, ${type_text(parameter.schema)}`));
    if (parameter.description) about.append(make("br"), sentence(parameter.description, "span"));
    table.append(make("tr", {}, make("td", {}, make("code", {}, parameter.name), " ",
      parameter.required ? make("span", { class: "must" }, "required") : ""), about));
  }
  return table;
}

function shell_quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function curl(method, path, operation, parameters, body) {
  const filled = path.replace(/{(\w+)\*?}/g, (whole, name) => {
    const known = parameters.find((parameter) => parameter.in === "path" && parameter.name === name);
    return known && known.example ? encodeURIComponent(known.example) : `{${name}}`;
  });
  const lines = [`curl ${method === "get" ? "" : `-X ${method.toUpperCase()} `}${shell_quoted(location.origin + filled)}`];
  if (operation["x-access"] !== "everyone") lines.push('-H "authorization: Bearer $POSTRIDER_KEY"');
  if (body !== undefined) {
    lines.push("-H 'content-type: application/json'");
    lines.push(`-d ${shell_quoted(JSON.stringify(body))}`);
  }
  return lines.join(" \\\n  ");
}

function answers(operation) {
  const holder = make("div");
  for (const [status, given] of Object.entries(operation.responses)) {
    const answer = at(given);
    const good = /^2/.test(status);
    const details = make("details", good ? { open: "" } : {},
      make("summary", {}, make("b", { class: good ? "ok" : "no" }, status), sentence(answer.description, "span")));
    for (const [type, media] of Object.entries(answer.content || {})) {
      if (type !== "application/json" && type !== "application/problem+json")
        details.append(make("p", { class: "media" }, make("code", {}, type)));
      if (type.endsWith("json")) details.append(colored(JSON.stringify(media_example(media), null, 2)));
      else if (media.example) details.append(plain(media.example));
      if (good && type === "application/json") {
        const table = fields_table(media.schema);
        if (table) details.append(make("details", {}, make("summary", {}, "Fields"), table));
      }
    }
    holder.append(details);
  }
  return holder;
}

function article(method, path, operation, is_webhook) {
  const parameters = (operation.parameters || []).map(at);
  const media = operation.requestBody ? operation.requestBody.content["application/json"] : null;
  const body = media ? media_example(media) : undefined;
  const left = make("div"), right = make("div");
  if (operation.description) left.append(sentence(operation.description));
  if (parameters.length) left.append(make("h4", {}, "Parameters"), parameters_table(parameters));
  if (media) {
    left.append(make("h4", {}, operation.requestBody.required ? "Body" : "Body, optional"));
    const table = fields_table(media.schema);
    if (table) left.append(table);
  }
  if (!is_webhook) right.append(make("h4", {}, "Request"), plain(curl(method, path, operation, parameters, body)));
  else if (media) right.append(make("h4", {}, "Request"), colored(JSON.stringify(body, null, 2)));
  right.append(make("h4", {}, "Answers"), answers(operation));
  const id = operation.operationId;
  return make("article", { id },
    make("h3", {}, make("a", { href: `#${id}` }, sentence(operation.summary, "span"))),
    make("div", { class: "call" }, make("span", { class: `method ${is_webhook ? "webhook" : method}` }, method.toUpperCase()),
      make("span", {}, is_webhook ? "your endpoint's URL" : path),
      is_webhook ? null : make("span", { class: "who" }, WHO[operation["x-access"]] || "")),
    make("div", { class: "columns" }, left, right));
}

function operations_by_tag() {
  const tags = new Map(document_.tags.map((tag) => [tag.name, { tag, operations: [] }]));
  const add = (method, path, operation, is_webhook) =>
    tags.get(operation.tags[0]).operations.push({ method, path, operation, is_webhook });
  for (const [path, item] of Object.entries(document_.paths))
    for (const [method, operation] of Object.entries(item)) add(method, path, operation, false);
  for (const item of Object.values(document_.webhooks || {}))
    for (const [method, operation] of Object.entries(item)) add(method, "", operation, true);
  return [...tags.values()].filter((each) => each.operations.length);
}

function show() {
  const main = document.querySelector("main"), contents = document.getElementById("contents");
  document.getElementById("version").textContent = document_.info.version;
  main.replaceChildren(make("h1", {}, "postrider API"), sentence(document_.info.summary || "", "p"));
  main.lastChild.className = "lead";
  main.append(sentence(document_.info.description),
    make("p", {}, "The document itself: ", make("a", { href: "/openapi.json" }, "/openapi.json"), " (OpenAPI 3.1)."));
  const all = [];
  for (const { tag, operations } of operations_by_tag()) {
    const section = make("section", {}, make("h2", {}, tag.name), sentence(tag.description));
    const list = make("ul"), heading = make("h2", {}, tag.name);
    for (const { method, path, operation, is_webhook } of operations) {
      const shown = article(method, path, operation, is_webhook);
      const entry = make("li", {}, make("a", { href: `#${operation.operationId}`, title: path },
        make("span", { class: `method ${is_webhook ? "webhook" : method}` }, is_webhook ? "HOOK" : method === "delete" ? "DEL" : method.toUpperCase()),
        sentence(operation.summary, "span")));
      const words = [tag.name, method, path, operation.operationId, operation.summary, operation.description || ""];
      all.push({ words: words.join(" ").toLowerCase(), entry, shown });
      section.append(shown);
      list.append(entry);
    }
    contents.append(heading, list);
    main.append(section);
    all.push({ group: true, heading, list, section });
  }
  const none = make("p", { class: "empty", hidden: "" }, "Nothing fits.");
  main.append(none);
  search(all, none);
  if (location.hash) { const target = document.getElementById(location.hash.slice(1)); if (target) target.scrollIntoView(); }
}

function search(all, none) {
  const box = document.getElementById("search");
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const each of all) {
      if (each.group) continue;
      const fits = words.every((word) => each.words.includes(word));
      each.entry.hidden = each.shown.hidden = !fits;
      found += fits ? 1 : 0;
    }
    for (const each of all) {
      if (!each.group) continue;
      const is_empty = [...each.list.children].every((entry) => entry.hidden);
      each.heading.hidden = each.list.hidden = each.section.hidden = is_empty;
    }
    none.hidden = found > 0;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== box) { event.preventDefault(); box.focus(); }
    if (event.key === "Escape" && document.activeElement === box) { box.value = ""; box.dispatchEvent(new Event("input")); box.blur(); }
  });
}

fetch("/openapi.json").then((answer) => answer.json()).then((fetched) => { document_ = fetched; show(); })
  .catch((error) => { document.querySelector("main").replaceChildren(make("p", {}, `The document cannot be read: ${error.message}`)); });
