// The pages of the console, one by one.
import assert from 'node:assert/strict';
import { deliveries, facts, key, open, signIn, url } from '../support.mjs';

export const pages = {
  async the_first_page_is_small_and_comes_from_this_server_only(page, { requested }) {
    let bytes = 0;
    page.on('response', async (response) => {
      bytes += Number((await response.allHeaders())['content-length'] ?? 0);
    });
    await signIn(page);
    assert.deepEqual(requested.filter((each) => !each.startsWith(url)), []);
    assert.ok(bytes > 10_000 && bytes < 150_000, `${bytes} bytes`);
  },

  async a_wrong_key_is_rejected_with_the_reason(page, { expected }) {
    expected.push(/401/);
    await page.goto(`${url}/console/deliveries?status=retrying`);
    await page.getByRole('heading', { name: 'Sign in to postrider' }).waitFor();
    await page.getByLabel('API key').fill('pr_wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('This key is unknown, expired or revoked.').waitFor();
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { level: 1, name: 'Deliveries' }).waitFor();
    assert.ok(page.url().endsWith('/console/deliveries?status=retrying'), page.url());
  },

  async a_link_signs_in_once_and_leaves_no_trace(page, { expected }) {
    expected.push(/401/);
    await page.goto(`${url}/console/enter${facts.link}`);
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    assert.ok(!page.url().includes('#'), page.url());
    await page.context().clearCookies();
    await page.goto('about:blank');
    await page.goto(`${url}/console/enter${facts.link}`);
    await page.getByRole('heading', { name: 'This link does not work' }).waitFor();
  },

  async nothing_secret_stays_in_the_browser(page) {
    await signIn(page);
    await open(page, deliveries);
    const kept = await page.evaluate(() => document.cookie + JSON.stringify({ ...localStorage }) + JSON.stringify({ ...sessionStorage }) + location.href);
    assert.ok(!kept.includes(key) && !kept.includes('postrider-console='), kept);
  },

  async filters_are_in_the_address_and_survive_reload_and_back(page) {
    await signIn(page);
    await open(page, deliveries);
    await page.getByLabel('Status').selectOption('dead_letter');
    await page.getByLabel('Subject').fill('invoice-404');
    await page.getByLabel('Subject').press('Enter');
    await page.waitForFunction(() => location.search === '?status=dead_letter&subject=invoice-404');
    const row = page.getByRole('row', { name: /invoice\.paid/ });
    await row.first().waitFor();
    await page.reload();
    await row.first().waitFor();
    assert.equal(await page.getByLabel('Subject').inputValue(), 'invoice-404');
    await row.first().getByRole('link').click();
    await page.getByRole('complementary', { name: 'Delivery' }).getByText('Dead letter: rejected').waitFor();
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => location.search === '?status=dead_letter&subject=invoice-404');
  },

  async a_failed_delivery_is_explained(page) {
    await signIn(page);
    await open(page, [`/console/tenants/${facts.tenant}/deliveries/${facts.deadDelivery}`, 'invoice.paid']);
    const verdict = page.getByRole('region', { name: 'Verdict' });
    await verdict.getByText('Dead letter: rejected').waitFor();
    assert.match(await verdict.innerText(), /404 Not Found\. The host is right, the path is not\./);
    assert.equal(await page.title(), `dlv_${facts.deadDelivery.slice(4, 8)}…${facts.deadDelivery.slice(-4)} · dead letter · postrider`);
  },

  async payloads_are_shown_exactly(page) {
    await signIn(page);
    await open(page, [`/console/tenants/${facts.tenant}/events/${facts.exactEvent}`, 'invoice.paid']);
    const shown = await page.getByLabel('Event data', { exact: true }).innerText();
    assert.equal(shown.replace(/\s/g, ''), facts.exactData);
  },

  async text_from_outside_stays_text(page) {
    await signIn(page);
    await open(page, [`/console/tenants/${facts.hostileTenant}`, facts.hostileName]);
    await open(page, [`/console/tenants/${facts.hostileTenant}/events/${facts.hostileEvent}`, 'hostile']);
    assert.equal(await page.evaluate(() => globalThis.injected), undefined);
    assert.equal(await page.locator('main img, main script, main iframe').count(), 0);
    const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(width <= 0, `${width} px too wide`);
  },

  async a_dead_letter_is_replayed_with_a_reason(page) {
    await signIn(page);
    await open(page, [`/console/tenants/${facts.tenant}/deliveries/${facts.replayDelivery}`, 'invoice.paid']);
    await page.getByRole('button', { name: 'Replay' }).click();
    const dialog = page.getByRole('dialog', { name: 'Replay this delivery' });
    assert.equal(await dialog.getByRole('button', { name: 'Replay' }).isDisabled(), true);
    await dialog.getByLabel('Reason').fill('the address was fixed');
    await dialog.getByRole('button', { name: 'Replay' }).click();
    await page.getByText('A new delivery was created.').waitFor();
    await page.getByText('It was replayed').waitFor();
  },

  async a_bulk_action_needs_the_number_typed(page) {
    await signIn(page);
    await open(page, [`/console/dead-letters?tenant=${facts.tenant}&endpoint=${facts.failingEndpoint}&cause=rejected`, 'Dead letters']);
    await page.getByRole('button', { name: /^Discard \d+$/ }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Reason').fill('test data');
    const button = dialog.getByRole('button', { name: /^Discard/ });
    const count = /(\d+)/.exec(await button.innerText())[1];
    await dialog.getByLabel(/^Type/).fill(`${Number(count) + 1}`);
    assert.equal(await button.isDisabled(), true);
    await dialog.getByLabel(/^Type/).fill(count);
    const sent = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/discard'));
    await button.click();
    assert.deepEqual((await sent).postDataJSON(), { endpoint: facts.failingEndpoint, cause: 'rejected', reason: 'test data' });
    await page.getByText('No dead letter matches these filters').waitFor();
  },

  async an_endpoint_is_paused_tested_and_resumed(page) {
    await signIn(page);
    await open(page, [`/console/tenants/${facts.tenant}/endpoints/${facts.healthyEndpoint}`, facts.host]);
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.getByText('Paused by an operator').waitFor();
    await page.getByRole('link', { name: 'Test', exact: true }).click();
    await page.getByRole('button', { name: 'Send test', exact: true }).click();
    await page.getByText('The receiver responded 204.').waitFor();
    await page.getByRole('button', { name: 'Resume', exact: true }).click();
    await page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
  },

  async a_change_by_somebody_else_is_noticed(page, { expected }) {
    expected.push(/412/);
    await signIn(page);
    await open(page, [`/console/tenants/${facts.tenant}/endpoints/${facts.healthyEndpoint}?tab=settings`, facts.host]);
    await page.getByLabel('Description').fill('mine');
    const path = `/v1/tenants/${facts.tenant}/endpoints/${facts.healthyEndpoint}`;
    const other = await fetch(url + path, { method: 'PATCH', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, body: '{"description":"theirs"}' });
    assert.equal(other.status, 200);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('This endpoint was changed after you opened it.').waitFor();
  },

  async a_reader_sees_no_buttons_that_change_things(page) {
    await signIn(page, facts.readerKey);
    await open(page, [`/console/tenants/${facts.tenant}/deliveries/${facts.deadDelivery}`, 'invoice.paid']);
    assert.equal(await page.getByRole('button', { name: /Replay|Cancel|Retry/ }).count(), 0);
    await page.getByText('This key does not see payloads.').waitFor();
    await open(page, [`/console/tenants/${facts.tenant}/endpoints/${facts.failingEndpoint}`, facts.host]);
    assert.equal(await page.getByRole('button', { name: /^(Pause|Resume|More)$/ }).count(), 0);
  },

  async search_finds_a_subject_and_opens_an_exact_id(page) {
    await signIn(page);
    await open(page, ['/console/search', 'Search']);
    await page.getByText('What are you looking for?').waitFor();
    await page.getByLabel('Search for').fill('invoice-404');
    await page.getByLabel('Search for').press('Enter');
    await page.getByRole('table', { name: 'Results' }).getByText('invoice.paid').first().waitFor();
    assert.ok(page.url().endsWith('/console/search?q=invoice-404'), page.url());
    await page.goto(`${url}/console/go/${facts.deadDelivery}`);
    await page.waitForURL(`**/console/tenants/${facts.tenant}/deliveries/${facts.deadDelivery}`);
    await page.goto(`${url}/console/go/dlv_unknown`);
    await page.getByText('Nothing has exactly this ID').waitFor();
  },

  async attempts_are_filtered_by_status_code(page) {
    await signIn(page);
    await open(page, ['/console/attempts?status_code=404', 'Attempts']);
    await page.getByRole('row', { name: /invoice\.paid/ }).first().waitFor();
    assert.equal(await page.getByRole('row', { name: /order\.created/ }).count(), 0);
    await open(page, ['/console/attempts?status_code=418', 'Attempts']);
    await page.getByText('No attempt matches these filters').waitFor();
  },

  async filters_that_cannot_be_applied_are_named(page, { requested }) {
    await signIn(page);
    await open(page, ['/console/attempts?status_code=teapot', 'Attempts']);
    await page.getByText('This is not a status code').waitFor();
    assert.deepEqual(requested.filter((each) => each.includes('/v1/attempts')), []);
    await page.getByRole('button', { name: 'Clear this filter' }).click();
    await page.getByRole('row', { name: /invoice\.paid/ }).first().waitFor();
    await open(page, ['/console/deliveries?status=lost', 'Deliveries']);
    await page.getByText('Not applied, because this page does not know it: status=lost').waitFor();
  },

  async a_reader_cannot_open_the_form_for_keys(page, { expected }) {
    expected.push(/403/);
    await signIn(page, facts.readerKey);
    await open(page, ['/console/keys', 'API keys']);
    await page.getByText('Not allowed').waitFor();
    assert.equal(await page.getByRole('button', { name: 'New key' }).count(), 0);
  },

  async all_deliveries_are_paused_and_released(page) {
    await signIn(page);
    await open(page, ['/console/cluster', 'Cluster']);
    await page.getByRole('table', { name: 'Nodes' }).getByText('Alive').first().waitFor();
    await page.getByRole('button', { name: 'Pause all' }).click();
    const dialog = page.getByRole('dialog', { name: 'Pause all deliveries' });
    await dialog.getByLabel('Reason').fill('incident 42');
    assert.equal(await dialog.getByRole('button', { name: 'Pause all' }).isDisabled(), true);
    await dialog.getByLabel(/^Type/).fill('pause all');
    await dialog.getByRole('button', { name: 'Pause all' }).click();
    await page.getByText('All deliveries are paused. Events are accepted').waitFor();
    await page.getByText('incident 42').waitFor();
    await page.getByRole('button', { name: 'Release', exact: true }).click();
    const release = page.getByRole('dialog', { name: 'Release the brake' });
    await release.getByLabel('Reason').fill('over');
    await release.getByRole('button', { name: 'Release' }).click();
    await page.getByRole('button', { name: 'Pause all' }).waitFor();
  },

  async a_key_is_created_shown_once_and_revoked(page) {
    await signIn(page);
    await open(page, ['/console/keys', 'API keys']);
    await page.getByRole('button', { name: 'New key' }).click();
    await page.getByRole('dialog').getByLabel('Description').fill('browser test');
    await page.getByRole('button', { name: 'Create key' }).click();
    const once = page.getByRole('dialog', { name: 'The new key' });
    const made = (await once.getByLabel('secret', { exact: true }).innerText()).trim();
    assert.match(made, /^pr_/);
    await once.getByRole('button', { name: 'I have stored it' }).click();
    await once.waitFor({ state: 'detached' });
    assert.ok(!(await page.content()).includes(made));
    const row = page.getByRole('row', { name: /browser test/ });
    await row.getByRole('button', { name: 'Revoke' }).click();
    const dialog = page.getByRole('dialog', { name: 'Revoke this key' });
    const typed = /Type (\S+) to confirm/.exec(await dialog.innerText())[1];
    await dialog.getByLabel(/^Type/).fill(typed);
    await dialog.getByRole('button', { name: 'Revoke key' }).click();
    await row.waitFor({ state: 'detached' });
    const rejected = await fetch(`${url}/v1/me`, { headers: { authorization: `Bearer ${made}` } });
    assert.equal(rejected.status, 401);
    await open(page, ['/console/audit?action=key.revoke', 'Audit log']);
    await page.getByText('key.revoke').first().waitFor();
  },

  async help_explains_the_words_of_the_pages(page) {
    await signIn(page);
    await open(page, ['/console/help', 'Help']);
    await page.getByText('The connection was refused.').waitFor();
  },

  async new_pages_fit_a_phone(page) {
    await signIn(page);
    await page.setViewportSize({ width: 390, height: 844 });
    for (const at of [['/console/search?q=invoice-404', 'Search'], ['/console/attempts', 'Attempts'], ['/console/cluster', 'Cluster'], ['/console/keys', 'API keys'], ['/console/audit', 'Audit log'], ['/console/help', 'Help']]) {
      await open(page, at);
      const excess = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(excess <= 0, `${at[0]}: ${excess} px too wide`);
    }
  },

  async signing_out_ends_the_session(page, { expected }) {
    expected.push(/401/);
    await signIn(page);
    await page.getByRole('link', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to postrider' }).waitFor();
    await page.goto(`${url}/console`);
    await page.getByRole('heading', { name: 'Sign in to postrider' }).waitFor();
  },

  async an_open_page_asks_to_sign_in_again(page, { expected }) {
    expected.push(/401/);
    await signIn(page);
    await open(page, deliveries);
    await page.context().clearCookies();
    await page.getByRole('dialog', { name: 'Sign in again' }).waitFor();
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('dialog', { name: 'Sign in again' }).waitFor({ state: 'detached' });
  },

  async paused_pages_ask_for_nothing(page) {
    await signIn(page);
    await open(page, deliveries);
    await page.getByRole('button', { name: 'Pause updates' }).click();
    await page.waitForLoadState('networkidle');
    const asked = [];
    page.on('request', (request) => asked.push(request.url()));
    await page.getByRole('button', { name: /Resume updates/ }).waitFor();
    await page.clock.install();
    await page.clock.runFor(30_000);
    assert.deepEqual(asked, []);
  },
};
