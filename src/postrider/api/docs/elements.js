// Builds elements of the page. Text from the API description is always inserted as text, never as HTML.

export function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

export function button(label, on_click, attributes) {
  const element = make("button", { type: "button", ...attributes }, label);
  element.addEventListener("click", on_click);
  return element;
}

// A line of text with `code` and **bold**.
export function line(text, tag = "span") {
  const element = make(tag);
  for (const part of String(text || "").split(/(`[^`]+`|\*\*[^*]+\*\*)/)) {
    if (part.startsWith("`")) element.append(make("code", {}, part.slice(1, -1)));
    else if (part.startsWith("**")) element.append(make("strong", {}, part.slice(2, -2)));
    else element.append(part);
  }
  return element;
}

export function paragraphs(text) {
  return String(text || "").split("\n\n").map((paragraph) => line(paragraph, "p"));
}

// The clipboard API exists only on https:// and localhost; elsewhere a selection is copied.
async function copy_text(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = make("textarea", { class: "offscreen", readonly: "", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const was_copied = document.execCommand("copy");
  area.remove();
  if (!was_copied) throw new Error("the browser did not copy");
  return undefined;
}

// `text` is a function, so that the button copies what is shown at that moment.
export function copy_button(text, label = "Copy") {
  const copy = button(label, async () => {
    try {
      await copy_text(text());
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Not copied";
    }
    setTimeout(() => { copy.textContent = label; }, 1500);
  }, { class: "copy" });
  return copy;
}

const JSON_TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/g;

function colored(text) {
  const code = make("code");
  let end = 0;
  for (const match of text.matchAll(JSON_TOKEN)) {
    code.append(text.slice(end, match.index));
    const kind = match[2] ? "json-key" : match[1] ? "json-string" : "json-number";
    code.append(make("span", { class: kind }, match[1] || match[3]), match[2] || "");
    end = match.index + match[0].length;
  }
  code.append(text.slice(end));
  return code;
}

function block(code, text) {
  const scrolled = make("pre", { tabindex: "0" }, code);
  return make("div", { class: "block" }, scrolled, copy_button(() => text));
}

export function json_block(value) {
  const text = JSON.stringify(value, null, 2);
  return block(colored(text), text);
}

export function code_block(text) {
  return block(make("code", {}, text), text);
}

// Content that is built when it is opened for the first time.
export function lazy_details(summary, content) {
  const details = make("details", {}, make("summary", {}, summary));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(content());
  });
  return details;
}
