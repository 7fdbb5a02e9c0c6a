// The API reference: renders /openapi.json, and searches it.

import {
  description_of, flat_fields, good_response, parameters_of, request_media, resolve, sections, set_document, type_text,
} from "./document.js";
import { button, code_block, copy_button, json_block, lazy_details, line, make, paragraphs } from "./elements.js";
import { samples } from "./samples.js";
import { key_field, try_panel } from "./try_it.js";

const ROLES = {
  everyone: "no key", authenticated: "any key", read: "reader, customer, operator, admin", publish: "publisher, operator, admin",
  customer: "customer, operator, admin", operate: "operator, admin", operators: "operator, admin (not bound to a tenant)", administer: "admin",
};

// ── one operation ──

function row(name, is_required, type, description) {
  const about = make("td", {}, make("span", { class: "type" }, type));
  if (description) about.append(make("br"), line(description));
  return make("tr", {}, make("td", {}, make("code", {}, name), is_required ? make("span", { class: "required" }, "required") : null), about);
}

function table(rows) {
  return make("table", {}, make("tbody", {}, ...rows));
}

function fields_table(schema) {
  return table(flat_fields(schema).map((field) => row(field.name, field.is_required, type_text(field.schema), description_of(field.schema))));
}

function parameters_table(parameters) {
  return table(parameters.map((each) => row(each.name, each.required, `${each.in}, ${type_text(each.schema)}`, description_of(each))));
}

function media_example(type, media) {
  if (media.example === undefined) return null;
  return type.endsWith("json") && type !== "application/x-ndjson" ? json_block(media.example) : code_block(media.example);
}

function response_details(status, response) {
  const is_good = /^2/.test(status);
  const summary = make("span", {}, make("b", { class: is_good ? "ok" : "no" }, status), line(response.description));
  const content = () => {
    const holder = make("div");
    for (const [type, media] of Object.entries(response.content || {})) {
      if (!type.endsWith("/json") && !type.endsWith("+json")) holder.append(make("p", { class: "soft" }, make("code", {}, type)));
      holder.append(media_example(type, media) || "");
      if (is_good && type === "application/json" && flat_fields(media.schema).length)
        holder.append(lazy_details("Fields", () => fields_table(media.schema)));
    }
    if (!holder.children.length) holder.append(make("p", { class: "soft" }, "No body."));
    return holder;
  };
  const details = lazy_details(summary, content);
  details.open = is_good;
  return details;
}

function responses(operation) {
  const all = Object.entries(operation.responses).map(([status, given]) => [status, resolve(given)]);
  const shown = all.filter(([status]) => /^[23]/.test(status)), errors = all.filter(([status]) => !/^[23]/.test(status));
  const list = (entries) => make("div", {}, ...entries.map(([status, response]) => response_details(status, response)));
  return make("div", {}, list(shown), lazy_details("Errors", () => list(errors)));
}

function try_it(method, path, operation) {
  if ("text/event-stream" in (good_response(operation).content || {}))
    return make("p", { class: "soft" }, "This response does not end; use the sample above to read it.");
  return lazy_details(make("strong", {}, "Try it"), () => try_panel(method, path, operation));
}

function reference_column(operation) {
  const parameters = parameters_of(operation), media = request_media(operation);
  const column = make("div", {}, ...paragraphs(operation.description || ""));
  if (parameters.length) column.append(make("h4", {}, "Parameters"), parameters_table(parameters));
  if (!media) return column;
  column.append(make("h4", {}, operation.requestBody.required ? "Body" : "Body (optional)"));
  if (flat_fields(media[1].schema).length) column.append(fields_table(media[1].schema));
  else column.append(make("p", { class: "soft" }, make("code", {}, media[0])));
  return column;
}

function sample_column({ method, path, operation, is_webhook }) {
  const column = make("div", { class: "side" });
  if (is_webhook) column.append(make("h4", {}, "Example"), json_block(request_media(operation)[1].example));
  else column.append(samples(method, path, operation), make("div", { class: "try" }, try_it(method, path, operation)));
  column.append(make("h4", {}, "Responses"), responses(operation));
  return column;
}

function article(entry) {
  const { method, path, operation, is_webhook } = entry, id = operation.operationId;
  return make("article", { id },
    make("h3", {}, make("a", { href: `#${id}` }, operation.summary)),
    make("div", { class: "call" }, make("span", { class: `method ${is_webhook ? "webhook" : method}` }, method.toUpperCase()),
      make("code", {}, is_webhook ? "your endpoint's URL" : path),
      is_webhook ? null : copy_button(() => path, "Copy path"),
      is_webhook ? null : make("span", { class: "roles", title: "Roles that can use this operation" }, ROLES[operation["x-access"]] || operation["x-access"])),
    make("div", { class: "columns" }, reference_column(operation), sample_column(entry)));
}

// ── search ──

// What can be found of an operation: [weight, text], titles before text.
function searchable({ method, path, operation }, tag) {
  const texts = [[8, operation.summary], [6, `${method.toUpperCase()} ${path}`], [4, operation.operationId], [3, tag.name]];
  const add_fields = (weight, schema) => {
    for (const field of flat_fields(schema)) texts.push([weight, `${field.name}: ${description_of(field.schema)} ${type_text(field.schema)}`]);
  };
  for (const each of parameters_of(operation)) texts.push([3, `${each.name}: ${description_of(each)} ${type_text(each.schema)}`]);
  const media = request_media(operation);
  if (media) add_fields(3, media[1].schema);
  texts.push([2, operation.description || ""]);
  for (const [status, given] of Object.entries(operation.responses)) {
    const response = resolve(given);
    texts.push([1, `${status} ${response.description}`]);
    for (const content of Object.values(response.content || {})) if (/^2/.test(status)) add_fields(1, content.schema);
  }
  return texts.map(([weight, text]) => ({ weight, text, lower: text.toLowerCase() }));
}

// The score of an operation, and the text that explains why it was found; null if a word is missing.
function match(texts, words) {
  let score = 0, why = null;
  for (const word of words) {
    const best = texts.filter((each) => each.lower.includes(word)).sort((a, b) => b.weight - a.weight)[0];
    if (!best) return null;
    score += best.weight;
    if (best.weight < 4 && !why) why = best.text;
  }
  return { score, why };
}

function shortened(text) {
  return text.length > 90 ? `${text.slice(0, 88)} …` : text;
}

function entry_link({ method, operation, is_webhook, path }, why) {
  const label = is_webhook ? "HOOK" : method === "delete" ? "DEL" : method.toUpperCase();
  return make("li", {}, make("a", { href: `#${operation.operationId}`, title: path },
    make("span", { class: `method ${is_webhook ? "webhook" : method}` }, label),
    make("span", {}, operation.summary, why ? make("small", {}, shortened(why)) : null)));
}

function show_results(groups, query, found_list, none) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean), found = [];
  for (const group of groups) {
    for (const entry of group.entries) {
      entry.match = match(entry.texts, words);
      entry.article.hidden = !entry.match;
      if (entry.match) found.push(entry);
    }
    group.section.hidden = group.entries.every((entry) => !entry.match);
  }
  found.sort((a, b) => b.match.score - a.match.score);
  found_list.replaceChildren(...(words.length ? found.map((entry) => entry_link(entry, entry.match.why)) : []));
  for (const group of groups) group.heading.hidden = group.list.hidden = words.length > 0;
  none.hidden = found.length > 0;
  none.firstChild.textContent = `No results for “${query.trim()}”.`;
  const status = document.getElementById("found");
  status.hidden = !words.length;
  status.textContent = found.length === 1 ? "1 result" : found.length ? `${found.length} results` : `No results for “${query.trim()}”.`;
}

function add_search(groups, found_list, none) {
  const box = document.getElementById("search");
  const search = () => show_results(groups, box.value, found_list, none);
  const clear = () => { box.value = ""; search(); };
  none.append(button("Clear search", () => { clear(); box.focus(); }));
  box.addEventListener("input", () => { search(); open_menu(true); });
  document.addEventListener("keydown", (event) => {
    const is_typing = /^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName) || document.querySelector("dialog");
    if (event.key === "/" && !is_typing) { event.preventDefault(); box.focus(); box.select(); }
    if (event.key === "Escape" && (!is_typing || document.activeElement === box)) clear();
    if (event.key === "Enter" && document.activeElement === box && found_list.firstChild) found_list.querySelector("a").click();
  });
  // A link to an operation that the search hides shows it.
  window.addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.closest("[hidden]")) { clear(); target.scrollIntoView(); }
  });
}

// ── the page ──

// On narrow screens the list of operations is folded.
function open_menu(is_open) {
  document.querySelector("nav").classList.toggle("open", is_open);
  document.getElementById("menu").setAttribute("aria-expanded", String(is_open));
}

function add_menu() {
  const menu = document.getElementById("menu");
  menu.addEventListener("click", () => open_menu(menu.getAttribute("aria-expanded") !== "true"));
  document.getElementById("contents").addEventListener("click", (event) => { if (event.target.closest("a")) open_menu(false); });
}

function introduction(info) {
  return [make("h1", {}, "API reference"), make("p", { class: "lead" }, info.summary), ...paragraphs(info.description),
    make("p", {}, "This page is generated from ", make("a", { href: "/openapi.json" }, "/openapi.json"), " (OpenAPI 3.1)."),
    make("div", { class: "panel" }, make("p", {}, "To use ", make("strong", {}, "Try it"), ", enter an API key. Requests go to this server. The page asks before it sends anything except GET requests."), key_field("key"))];
}

function section_of({ tag, operations }) {
  const anchor = `tag-${tag.name.toLowerCase().replaceAll(" ", "-")}`;
  const entries = operations.map((each) => ({ ...each, article: article(each), texts: searchable(each, tag) }));
  return {
    entries,
    section: make("section", { id: anchor }, make("h2", {}, tag.name), line(tag.description, "p"), ...entries.map((entry) => entry.article)),
    heading: make("h2", {}, make("a", { href: `#${anchor}` }, tag.name)),
    list: make("ul", {}, ...entries.map((entry) => entry_link(entry))),
  };
}

function show(fetched) {
  set_document(fetched);
  const main = document.getElementById("main"), contents = document.getElementById("contents");
  document.getElementById("version").textContent = fetched.info.version;
  const groups = sections().map(section_of), found_list = make("ul", { class: "found" });
  const none = make("div", { class: "none", hidden: "" }, make("p"));
  contents.replaceChildren(found_list, ...groups.flatMap((group) => [group.heading, group.list]));
  main.replaceChildren(...introduction(fetched.info), ...groups.map((group) => group.section), none);
  add_search(groups, found_list, none);
  add_menu();
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target) target.scrollIntoView();
}

async function load() {
  try {
    const response = await fetch("/openapi.json");
    if (!response.ok) throw new Error(`status ${response.status}`);
    show(await response.json());
  } catch (error) {
    document.getElementById("main").replaceChildren(make("p", { class: "no" }, `Could not load /openapi.json: ${error.message}`));
  }
}

load();
