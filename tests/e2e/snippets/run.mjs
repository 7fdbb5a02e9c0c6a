// node run.mjs FILE: FILE has the verify() that is called.
import fs from "node:fs";

const { verify } = await import(process.argv[2]);
for (const line of fs.readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const [secret, id, timestamp, signature, body] = line.split("\t").map((each) => (each === "-" ? undefined : Buffer.from(each, "base64")));
  const headers = {};
  for (const [name, value] of Object.entries({ id, timestamp, signature })) if (value) headers[`webhook-${name}`] = value.toString();
  console.log(verify(secret.toString(), headers, body));
}
