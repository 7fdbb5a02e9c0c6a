"""The row of the result table that is about inbound webhooks."""

import json
import urllib.request

from . import processes

SECRET = "bench-inbox-secret"
CONNECTIONS = 64


def accepted(env, node, *, seconds, source=None):
    """A closed loop of single requests; 2xx responses per second, and how long that took."""
    command = [env.tools / "bench_loadgen", "--target", node.address, "--key", node.KEY, "--tenants", 1, "--types", 1,
               "--tenant-prefix", "inbox-plain-", "--batch", 1, "--connections", CONNECTIONS, "--seconds", seconds,
               "--first-seq", env.take_numbers()]
    if source:
        command += ["--source", source, "--secret", SECRET]
    program = processes.Program(command)
    out, _ = program.process.communicate(timeout=seconds + 120)
    if program.process.returncode != 0:
        raise RuntimeError("the load generator failed")
    return json.loads(out)


def post(node, path, body):
    request = urllib.request.Request(f"http://{node.address}{path}", json.dumps(body).encode(), method="POST",
                                     headers={"authorization": f"Bearer {node.KEY}", "content-type": "application/json"})
    urllib.request.urlopen(request, timeout=30).close()


def inbound(env):
    """Inbound messages accepted against events published to a tenant without endpoints, by turns."""
    seconds = max(3, env.sizes.sustained_s / 3)
    with env.database() as database, env.node(database) as node:
        post(node, "/v1/tenants", {"id": "inbox-plain-0"})
        post(node, "/v1/sources", {"id": "bench", "provider": "github", "secret": SECRET})
        accepted(env, node, seconds=2)
        accepted(env, node, seconds=2, source="bench")
        rounds = [(accepted(env, node, seconds=seconds), accepted(env, node, seconds=seconds, source="bench"))
                  for _ in range(2)]
    for plain, taken in rounds:
        if plain["rejected"] or taken["rejected"]:
            env.note(f"inbound: {plain['rejected']} publishes and {taken['rejected']} messages were rejected")
    published = sum(plain["acked_per_s"] for plain, _ in rounds) / len(rounds)
    received = sum(taken["acked_per_s"] for _, taken in rounds) / len(rounds)
    p99 = max(taken["latency"]["p99_ns"] for _, taken in rounds) / 1e6
    plain_p99 = max(plain["latency"]["p99_ns"] for plain, _ in rounds) / 1e6
    env.figures["inbound"] = {"per_s": received, "publish_per_s": published, "p99_ms": p99, "publish_p99_ms": plain_p99}
    env.add("inbound messages accepted, one by one", "", f"{received:,.0f}/s = {received / published:.2f} × publishing",
            None, f"publishing to a tenant without endpoints {published:,.0f}/s; response p99 {p99:.1f} ms against "
            f"{plain_p99:.1f} ms; {CONNECTIONS} connections in a closed loop")
