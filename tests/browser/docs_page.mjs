// Drives the API reference in chromium: node docs_page.mjs URL KEY. Prints {scenario: null or the error} as JSON, and
// the samples that tests/e2e/test_docs_page.py runs.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [url, key] = process.argv.slice(2);
const TIMEOUT_MS = 60_000;
const PHONE = { width: 390, height: 844 };
const samples = {};

const ids = (page, selector) => page.locator(selector).evaluateAll((found) => found.filter((each) => !each.closest("[hidden]")).map((each) => each.id));

async function sample(page, operation, language) {
  await page.locator(`#${operation}-${language}`).click();
  return page.locator(`#${operation}-sample code`).innerText();
}

// Opens the form of an operation and returns it.
async function open_form(page, operation) {
  await page.locator(`#${operation} .try summary`).first().click();
  const panel = page.locator(`#${operation} .panel`);
  await panel.waitFor();
  return panel;
}

const scenarios = {
  async loads_only_its_own_files_without_errors(page, { errors, requested }) {
    assert.equal(await page.locator("article").count(), await page.evaluate(async () => {
      const api = await (await fetch("/openapi.json")).json();
      return [...Object.values(api.paths), ...Object.values(api.webhooks)].flatMap(Object.keys).length;
    }));
    assert.deepEqual(errors, []);
    assert.deepEqual(requested.filter((each) => !each.startsWith(url)), []);
  },

  async operations_have_names(page) {
    const titles = await page.locator("article h3").allInnerTexts();
    for (const title of ["Create endpoint", "Pause endpoint", "Publish event", "List tenants"]) assert.ok(titles.includes(title), title);
  },

  async search_finds_fields_and_text(page) {
    await page.fill("#search", "give_up_seconds");
    const results = await page.locator(".found a").allInnerTexts();
    assert.match(results[0], /Create endpoint/);
    assert.match(results[0], /give_up_seconds/);
    assert.ok((await ids(page, "article")).includes("create_endpoint"));
    assert.ok(!(await ids(page, "article")).includes("list_nodes"));
    await page.fill("#search", "prometheus");
    assert.deepEqual(await ids(page, "article"), ["get_metrics"]);
  },

  async search_without_results_says_so(page) {
    await page.fill("#search", "fax machine");
    assert.match(await page.locator("#found").innerText(), /No results for “fax machine”/);
    assert.deepEqual(await ids(page, "article"), []);
    await page.getByRole("button", { name: "Clear search" }).click();
    assert.ok((await ids(page, "article")).length > 50);
  },

  async keyboard_reaches_search_and_tabs(page) {
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.id), "search");
    await page.keyboard.type("pause endpoint");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => location.hash === "#pause_endpoint");
    await page.keyboard.press("Escape");
    assert.equal(await page.inputValue("#search"), "");
    await page.locator("#list_tenants-curl").focus();
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.evaluate(() => document.activeElement.id), "list_tenants-node");
    assert.match(await page.locator("#list_tenants-sample").innerText(), /await fetch/);
  },

  async samples_can_be_copied(page, { context }) {
    await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
    const shown = await sample(page, "create_tenant", "curl");
    await page.locator("#create_tenant .samples .copy").click();
    await page.locator("#create_tenant .samples .copy", { hasText: "Copied" }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), shown);
  },

  async samples_are_offered_in_three_languages(page) {
    samples.curl = await sample(page, "create_tenant", "curl");
    samples.node = await sample(page, "update_tenant", "node");
    samples.python = await sample(page, "get_tenant", "python");
  },

  async the_key_is_kept_in_memory_only(page, { context }) {
    await page.fill("#key", "pr_in-memory");
    const panel = await open_form(page, "list_tenants");
    assert.equal(await panel.locator("input.key").inputValue(), "pr_in-memory");
    assert.ok(!(await page.locator("body").innerText()).includes("pr_in-memory"));
    const stored = await page.evaluate(() => localStorage.length + sessionStorage.length);
    assert.equal(stored, 0);
    assert.deepEqual(await context.cookies(), []);
    assert.ok(!page.url().includes("pr_in-memory"));
    await page.reload();
    await page.waitForSelector("article");
    assert.equal(await page.inputValue("#key"), "");
  },

  async try_it_shows_request_and_response(page) {
    await page.fill("#key", key);
    const panel = await open_form(page, "list_tenants");
    await panel.locator(".send").click();
    await panel.locator(".outcome", { hasText: "200" }).waitFor();
    const shown = await panel.locator(".result").innerText();
    assert.match(shown, /GET \/v1\/tenants/);
    assert.match(shown, /authorization: Bearer \*\*\*/);
    assert.match(shown, /"data"/);
    assert.ok(!shown.includes(key));
  },

  async try_it_asks_before_it_changes_something(page, { requested }) {
    await page.fill("#key", key);
    const panel = await open_form(page, "create_tenant");
    await panel.locator("textarea").fill('{"id": "from-the-page"}');
    await panel.locator(".send").click();
    await page.getByRole("dialog").getByText("POST /v1/tenants").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.ok(!requested.some((each) => each.endsWith("/v1/tenants")));
    await panel.locator(".send").click();
    await page.getByRole("button", { name: "Send POST" }).click();
    await panel.locator(".outcome", { hasText: "201" }).waitFor();
    assert.match(await panel.locator(".result").innerText(), /"from-the-page"/);
  },

  async try_it_names_what_is_missing(page, { requested }) {
    const panel = await open_form(page, "get_tenant");
    await panel.locator(".send").click();
    await panel.getByText("Enter an API key.").waitFor();
    await page.fill("#key", "pr_unknown");
    await panel.locator(".send").click();
    await panel.getByText("tenant is required.").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.id), "try-get_tenant-tenant");
    assert.ok(!requested.some((each) => each.includes("/v1/")));
    await panel.locator("#try-get_tenant-tenant").fill("a/b");
    await page.keyboard.press("Enter");
    await panel.locator(".outcome", { hasText: "401" }).waitFor();
    assert.ok(requested.some((each) => each.endsWith("/v1/tenants/a%2Fb")));
  },

  async fits_a_phone(page) {
    await page.setViewportSize(PHONE);
    await open_form(page, "create_endpoint");
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), PHONE.width);
    assert.equal(await page.locator("#contents").isVisible(), false);
    await page.locator("#menu").click();
    await page.locator("#contents").getByText("Pause endpoint").click();
    await page.waitForFunction(() => location.hash === "#pause_endpoint");
    assert.equal(await page.locator("#contents").isVisible(), false);
    assert.equal(await page.locator("#menu").getAttribute("aria-expanded"), "false");
  },

  async has_light_and_dark_colors(page) {
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.emulateMedia({ colorScheme: "light" });
    const light = await background();
    await page.emulateMedia({ colorScheme: "dark" });
    assert.notEqual(await background(), light);
  },
};

async function run(browser, scenario) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  context.setDefaultTimeout(TIMEOUT_MS);
  const page = await context.newPage(), errors = [], requested = [];
  page.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("request", (request) => requested.push(request.url()));
  try {
    await page.goto(`${url}/docs`);
    await page.waitForSelector("article");
    await scenario(page, { context, errors, requested });
    return null;
  } catch (error) {
    return error.stack;
  } finally {
    await context.close();
  }
}

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium", timeout: TIMEOUT_MS,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"],
});
const results = {};
for (const [name, scenario] of Object.entries(scenarios)) results[name] = await run(browser, scenario);
await browser.close();
console.log(JSON.stringify({ results, samples }));
