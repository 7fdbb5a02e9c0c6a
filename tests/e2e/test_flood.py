"""One tenant's key floods the API with slow calls: others publish as before, and the tenant gets 429."""

import json
import pathlib
import subprocess
import sys

FLOOD = pathlib.Path(__file__).resolve().parents[2] / "bench" / "harness" / "flood.py"
FILL = """
  insert into postrider.event (id, tenant_id, type, body)
  select (left(replace(postrider.id_floor(now() - interval '1 hour')::text, '-', ''), 12)
          || lpad(to_hex(n), 20, '0'))::uuid, 'greedy', 'flood.t', '{}'
  from generate_series(1, 5000) n"""


def test_a_flood_of_one_tenant_leaves_publishing_to_others(node, hook):
    node.api.create_tenant("greedy")
    node.api.create_tenant("modest")
    for _ in range(10):
        node.api.create_endpoint("greedy", hook.url, ["*"])
    node.sql(FILL)
    key = node.api.post("/v1/keys", {"role": "operator", "tenant_id": "greedy"}).expect(201)["key"]
    flood = subprocess.Popen([sys.executable, FLOOD, "--target", node.address, "--key", key, "--tenant", "greedy",
                              "--answers", "50", "--connections", "150"], text=True, stdout=subprocess.PIPE)
    refused = set()
    while flood.poll() is None:
        made = node.api.post("/v1/keys", {"role": "publisher", "tenant_id": "modest"}).expect(201)["key"]
        published = node.api.as_key(made).post("/v1/tenants/modest/events", {"type": "modest.event", "data": 1})
        if published.status != 202:
            refused.add(published.status)
    statuses = json.loads(flood.stdout.read())
    assert not refused
    for kind, counts in statuses.items():
        assert set(counts) <= {"200", "429"}, (kind, counts)
    for status in ("200", "429"):
        assert any(counts.get(status) for counts in statuses.values()), statuses
