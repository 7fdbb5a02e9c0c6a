// Drives the console in chromium: node tests/console.mjs URL KEY FACTS. Prints {scenario: null or the error} as JSON.
// tests/e2e/test_console.py starts the server, creates what the scenarios look at, and passes it as FACTS. With ONLY in the
// environment, only scenarios whose name contains it run.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';
import { pages } from './scenarios/pages.mjs';
import { timeout } from './support.mjs';

const scenarios = { ...pages };

async function run(browser, scenario) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' });
  context.setDefaultTimeout(timeout);
  const page = await context.newPage();
  const errors = [];
  const requested = [];
  const expected = [];
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('request', (request) => requested.push(request.url()));
  try {
    // The first look for a session finds none.
    expected.push(/\/v1\/me/);
    await scenario(page, { requested, expected });
    const unexpected = errors.filter((text) => !expected.some((pattern) => pattern.test(text)));
    assert.deepEqual(unexpected, []);
    return null;
  } catch (error) {
    return `${error.stack}\nat ${page.url()}\n${errors.join('\n')}\n${(await page.locator('body').innerText().catch(() => '')).slice(0, 1500)}`;
  } finally {
    await context.close();
  }
}

const only = process.env.ONLY;
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  timeout,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
});
const results = {};
for (const [name, scenario] of Object.entries(scenarios)) if (!only || name.includes(only)) results[name] = await run(browser, scenario);
await browser.close();
console.log(JSON.stringify(results));
