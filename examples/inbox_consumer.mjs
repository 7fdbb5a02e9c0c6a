// Processes the inbound webhooks of one source: claim, process, acknowledge. Needs the package `pg`.
//
// usage: node inbox_consumer.mjs DATABASE_URL SOURCE WORKER [--until-empty]
import pg from "pg";

const [url, source, worker] = process.argv.slice(2);
const untilEmpty = process.argv.includes("--until-empty");
const pollMs = 5_000;

// Your code. This example writes a row per message.
async function handle(client, message) {
  const body = JSON.stringify(JSON.parse(message.body));
  await client.query("insert into processed (message_id, body, worker) values ($1, $2, $3)", [message.id, body, worker]);
}

// The message is acknowledged in the transaction that processes it, so both commit or neither does.
async function one(client, message) {
  await client.query("begin");
  try {
    await handle(client, message);
    const { rows } = await client.query("select postrider.inbox_ack($1, $2) as acked", [worker, [message.id]]);
    await client.query(rows[0].acked === 1 ? "commit" : "rollback"); // 0: the lease has passed to another worker
  } catch (error) {
    await client.query("rollback");
    await client.query("select postrider.inbox_nack($1, $2, $3)", [worker, message.id, String(error)]);
  }
}

async function work(client) {
  const { rows } = await client.query("select id, body from postrider.inbox_claim($1, $2, 10, '30 seconds')", [worker, source]);
  for (const message of rows) await one(client, message);
  return rows.length;
}

const client = new pg.Client({ connectionString: url });
await client.connect();
let wake = () => {};
client.on("notification", () => wake());
await client.query("listen postrider_inbox");
for (;;) {
  while ((await work(client)) > 0);
  if (untilEmpty) break;
  await new Promise((resolve) => {
    wake = resolve;
    setTimeout(resolve, pollMs);
  });
}
await client.end();
