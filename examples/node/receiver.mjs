// Receives webhooks, verifies their signatures with the Standard Webhooks library, and prints each event once.
//
// usage: WEBHOOK_SECRET=whsec_… LISTEN=127.0.0.1:8000 node receiver.mjs
import http from "node:http";
import { Webhook } from "standardwebhooks";

const maxBodyBytes = 1 << 20;
const webhook = new Webhook(process.env.WEBHOOK_SECRET);
const seen = new Set(); // a table with a unique key in a real service

// An event can arrive more than once, always with the same ID.
function handle(id, event) {
  if (seen.has(id)) return;
  seen.add(id);
  console.log(id, event.type);
}

async function receive(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) return 413;
    chunks.push(chunk);
  }
  let event;
  try {
    event = webhook.verify(Buffer.concat(chunks).toString(), request.headers);
  } catch {
    return 401;
  }
  handle(request.headers["webhook-id"], event);
  return 204;
}

const server = http.createServer(async (request, response) => {
  response.writeHead(await receive(request)).end();
});
const [host, port] = process.env.LISTEN.split(":");
server.listen(Number(port), host);
