// What all scenarios use: the server they run against, and the steps they share.
import assert from 'node:assert/strict';

const [givenUrl, givenKey, factsText] = process.argv.slice(2);
export const url = givenUrl;
export const key = givenKey;
/** What tests/e2e/test_console.py created. */
export const facts = JSON.parse(factsText);
export const timeout = 60_000;

export async function signIn(page, given = key) {
  await page.goto(`${url}/console/sign-in`);
  await page.getByLabel('API key').fill(given);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
}

export const deliveries = ['/console/deliveries', 'Deliveries'];

/** Goes to a page and waits until it has its heading and nothing loads any more. */
export async function open(page, [path, heading]) {
  await page.goto(url + path);
  await page.getByRole('heading', { level: 1, name: heading }).first().waitFor();
  await page.waitForFunction(() => !document.querySelector('[aria-busy="true"]'));
}

/** A call of the API beside the browser, with the admin key. */
export async function api(method, path, body) {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

/** Asks until `find` returns something. Never sleeps longer than one round. */
export async function eventually(what, find) {
  const end = Date.now() + timeout;
  for (;;) {
    const found = await find();
    if (found) return found;
    assert.ok(Date.now() < end, `did not happen: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** The page may not be wider than its window. */
export async function assertFits(page, name) {
  const excess = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(excess <= 0, `${name}: ${excess} px too wide`);
}
