// A small order service: charging an order and publishing the event is one transaction.
//
// usage: DATABASE_URL=… node orders.mjs charge ORDER CENTS [--fail | --crash]
//
// --fail rolls back, --crash kills the process before the commit: in both cases there is neither a charge nor an event.
import pg from "pg";

export async function charge(client, order, cents, beforeCommit = () => {}) {
  await client.query("begin");
  try {
    await client.query("insert into charge (order_id, cents) values ($1, $2)", [order, cents]);
    const { rows } = await client.query(
      "select postrider.publish($1, $2, $3::json, id => $4) as event",
      ["acme", "order.charged", JSON.stringify({ order, cents }), `charge-${order}`],
    );
    beforeCommit();
    await client.query("commit");
    return rows[0].event;
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

const before = {
  "--fail": () => { throw new Error("the payment provider declined"); },
  "--crash": () => process.kill(process.pid, "SIGKILL"),
};

const [verb, order, cents, how] = process.argv.slice(2);
if (verb !== "charge" || cents === undefined) {
  console.error("usage: orders.mjs charge ORDER CENTS [--fail | --crash]");
  process.exit(2);
}
const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
await client.connect();
try {
  console.log(await charge(client, order, Number(cents), before[how]));
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await client.end();
}
