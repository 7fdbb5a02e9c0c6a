// Verifies what print_signed prints the way receivers do: with the official libraries of Standard Webhooks and Svix,
// and with node's own crypto for the schemes that these do not know (Ed25519, hex).
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHmac, createPublicKey, verify } from "node:crypto";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";

const signer = process.argv[2];
assert.ok(signer, "usage: node judge.mjs <print_signed>");

function headersOf(head) {
  assert.ok(head.endsWith("\r\n"), "every line ends in CRLF");
  const headers = {};
  for (const line of head.slice(0, -2).split("\r\n")) {
    const [, name, value] = /^([a-z0-9-]+): (\S.*)$/.exec(line) ?? assert.fail(`not a header line: ${line}`);
    assert.ok(!(name in headers), `${name} is sent twice`);
    headers[name] = value;
  }
  return headers;
}

function judgeStandard({ secrets, headers, body }) {
  const text = body.toString("utf8");
  const changed = text.replace(/^\{/, "{ ");
  const stranger = "whsec_" + Buffer.alloc(32, "x").toString("base64");
  for (const Webhook of [StandardWebhook, SvixWebhook]) {
    for (const secret of secrets) {
      assert.deepEqual(new Webhook(secret).verify(text, headers), JSON.parse(text));
      assert.throws(() => new Webhook(secret).verify(changed, headers));
      const moved = { ...headers, "webhook-id": "evt_other" };
      assert.throws(() => new Webhook(secret).verify(text, moved));
    }
    assert.throws(() => new Webhook(stranger).verify(text, headers));
  }
  assert.equal(headers["webhook-signature"].split(" ").length, secrets.length);
}

// An Ed25519 public key as DER: a fixed prefix and the 32 bytes.
function ed25519Key(text) {
  assert.match(text, /^whpk_/);
  const raw = Buffer.from(text.slice("whpk_".length), "base64");
  const der = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), raw]);
  return createPublicKey({ key: der, format: "der", type: "spki" });
}

function judgeEd25519({ publicKeys, headers, body }) {
  const signed = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`), body]);
  const entries = headers["webhook-signature"].split(" ").map((entry) => entry.split(","));
  assert.equal(entries.length, publicKeys.length);
  for (const text of publicKeys) {
    const isGood = ([version, signature]) =>
      version === "v1a" && verify(null, signed, ed25519Key(text), Buffer.from(signature, "base64"));
    assert.equal(entries.filter(isGood).length, 1);
  }
}

function judgeHex({ scheme, secrets, headers, body }) {
  const prefix = scheme === "hex-v1" ? "v1=" : "sha256=";
  const expected = (secret) =>
    prefix + createHmac("sha256", secret).update(`${headers["x-webhook-timestamp"]}.`).update(body).digest("hex");
  assert.equal(headers["x-webhook-signature"], expected(secrets.at(-1)));
  assert.equal(headers["x-webhook-signature-next"], secrets.length > 1 ? expected(secrets[0]) : undefined);
  const idName = scheme === "hex-v1" ? "x-webhook-event-id" : "x-webhook-id";
  assert.match(headers[idName], /^evt_[0-9a-f]{32}$/);
}

const judges = { standard: judgeStandard, "standard-ed25519": judgeEd25519, "hex-v1": judgeHex, sha256: judgeHex };

const lines = execFileSync(signer, { encoding: "utf8", maxBuffer: 1 << 26 }).trim().split("\n");
const seen = {};
lines.map((line) => JSON.parse(line)).forEach(({ scheme, secrets, public_keys, head, body_base64 }, index) => {
  const headers = headersOf(head);
  judges[scheme]({ scheme, secrets, publicKeys: public_keys, headers, body: Buffer.from(body_base64, "base64") });
  assert.equal(headers["webhook-attempt"], String(index + 1));
  assert.match(headers["webhook-delivery-id"], /^dlv_[0-9a-f]{32}$/);
  seen[scheme] = (seen[scheme] ?? 0) + 1;
});
assert.deepEqual(Object.keys(seen).sort(), Object.keys(judges).sort());
console.log("verified:", seen);
