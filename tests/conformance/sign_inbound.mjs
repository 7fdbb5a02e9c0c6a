// Official libraries sign (or, where they only verify, judge) requests for a source of each provider.
// Reads {now, url: {twilio, twilio_json}} from standard input; prints [{provider, case, secret, headers, body, query}].
import "./webcrypto.mjs";
import { createHash, createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import Stripe from "stripe";
import { sign } from "@octokit/webhooks-methods";
import twilio from "twilio";
import * as standard from "standardwebhooks";
import * as svix from "svix";

const require = createRequire(import.meta.url);
const given = JSON.parse(readFileSync(0, "utf8"));
const now = new Date(given.now * 1000);
const body = JSON.stringify({ id: "evt_judged", type: "order.paid", event_id: "Ev1", name: "Jürgen ☃" });
const requests = [];
const add = (provider, secret, headers, more = {}) =>
  requests.push({ provider, case: provider, secret, body, query: "", ...more, headers: { "content-type": "application/json", ...headers } });

const whsec = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const at = String(given.now);
add("standard", whsec, { "webhook-id": "msg_1", "webhook-timestamp": at,
  "webhook-signature": new standard.Webhook(whsec).sign("msg_1", now, body) });
add("svix", whsec, { "svix-id": "msg_1", "svix-timestamp": at, "svix-signature": new svix.Webhook(whsec).sign("msg_1", now, body) });

const stripe = new Stripe("sk_test_unused");
add("stripe", "whsec_stripe_judge", {
  "stripe-signature": stripe.webhooks.generateTestHeaderString({ payload: body, secret: "whsec_stripe_judge", timestamp: given.now }) });

add("github", "It's a Secret", { "x-hub-signature-256": await sign("It's a Secret", body), "x-github-delivery": "72d3162e" });

const token = "12345678901234567890123456789012";
const form = { From: "+4912345", Body: "Grüße & more=1", MediaUrl: ["b", "a", "b"] };
const encoded = Object.entries(form).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
add("twilio", token, { "content-type": "application/x-www-form-urlencoded",
  "x-twilio-signature": twilio.getExpectedTwilioSignature(token, given.url.twilio, form) },
  { case: "twilio", body: new URLSearchParams(encoded).toString() });
const query = `?bodySHA256=${twilio.getExpectedBodyHash ? twilio.getExpectedBodyHash(body) : createHash("sha256").update(body).digest("hex")}`;
add("twilio", token, { "x-twilio-signature": twilio.getExpectedTwilioSignature(token, given.url.twilio_json + query, {}) },
  { case: "twilio_json", query });

// These two only verify: they are asked whether what is sent here is what they would take.
const slackSecret = "8f742231b10e8888abcd99yyyzzz85a5";
const slackHeaders = { "x-slack-request-timestamp": at,
  "x-slack-signature": "v0=" + createHmac("sha256", slackSecret).update(`v0:${at}:${body}`).digest("hex") };
const { verifySlackRequest } = require("@slack/bolt/dist/receivers/verify-request.js");
verifySlackRequest({ signingSecret: slackSecret, body, headers: { ...slackHeaders, "x-slack-request-timestamp": given.now } });
add("slack", slackSecret, slackHeaders);

await import("@shopify/shopify-api/adapters/node");
const { shopifyApi, ApiVersion } = await import("@shopify/shopify-api");
const shopifySecret = "shpss_0123456789abcdef";
const shopify = shopifyApi({ apiKey: "k", apiSecretKey: shopifySecret, scopes: [], hostName: "example.com",
  apiVersion: Object.values(ApiVersion).at(-2), isEmbeddedApp: false });
const shopifyHeaders = { "x-shopify-hmac-sha256": createHmac("sha256", shopifySecret).update(body).digest("base64"),
  "x-shopify-topic": "orders/create", "x-shopify-shop-domain": "a.myshopify.com", "x-shopify-api-version": "2025-01",
  "x-shopify-webhook-id": "b54557e4" };
const judged = await shopify.webhooks.validate({ rawBody: body, rawRequest: { method: "POST", url: "/", headers: shopifyHeaders }, rawResponse: {} });
if (!judged.valid) throw new Error(`shopify: ${judged.reason}`);
add("shopify", shopifySecret, shopifyHeaders);

console.log(JSON.stringify(requests));
