"""Tenants and endpoints through the API, backlogs and history in bulk through SQL."""

import concurrent.futures
import http.client
import json
import threading

# The n-th made id: the given millisecond and after, unique in its first ten bytes, of a node slot that no node gets
# in a run (the last one).
ID_HEX = """lpad(to_hex({base_ms} + n / 4096), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || 'bfff'"""
NOW_MS = "(extract(epoch from now()) * 1000)::bigint"


class Registrar:
    """Registers over a few kept connections, so that a hundred thousand endpoints are made in minutes."""

    def __init__(self, node, workers=8):
        self.node, self.workers = node, workers
        self._local = threading.local()

    def _call(self, method, path, document):
        if not hasattr(self._local, "connection"):
            host, port = self.node.address.split(":")
            self._local.connection = http.client.HTTPConnection(host, int(port), timeout=60)
        headers = {"authorization": f"Bearer {self.node.KEY}", "content-type": "application/json"}
        self._local.connection.request(method, path, json.dumps(document), headers)
        answer = self._local.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]!r}")

    def _all(self, calls):
        with concurrent.futures.ThreadPoolExecutor(self.workers) as pool:
            for done in pool.map(lambda call: self._call(*call), calls):
                assert done is None

    def register(self, prefix, tenants, endpoints_each, url_of, **fields):
        """Tenants `prefix`0…; endpoint j of each subscribes to type bench.e<j>, so an event has one delivery."""
        self._all([("POST", "/v1/tenants", {"id": f"{prefix}{t}"}) for t in range(tenants)])
        self._all([
            ("PUT", f"/v1/tenants/{prefix}{t}/endpoints/e{t}-{j}",
             {"url": url_of(t * endpoints_each + j), "event_types": [f"bench.e{j}"], **fields})
            for t in range(tenants) for j in range(endpoints_each)])


def fill_pending(cluster, database, count, tenant_pattern, first_seq=0):
    """`count` pending deliveries, spread evenly over the endpoints of the tenants that match."""
    cluster.sql(database, f"""
      begin;
      create temporary table target as
        select row_number() over (order by delivery_tail) - 1 as place, id, bucket, tenant_id, delivery_tail
        from postrider.endpoint where tenant_id like '{tenant_pattern}' and status = 'active';
      create unique index on target (place);
      create temporary table made as
        select n, {ID_HEX.format(base_ms=NOW_MS)} as head, n % (select count(*) from target) as place
        from generate_series(0, {count} - 1) as n;
      insert into postrider.event (id, tenant_id, type, body, created_at)
      select (head || '000000000000')::uuid, t.tenant_id, 'bench.e0',
             '{{"id":"evt_' || head || '000000000000","type":"bench.e0","tenant_id":"' || t.tenant_id ||
             '","created_at":"2026-01-01T00:00:00Z","data":{{"bench_seq":' || ({first_seq} + n) || ',"pad":"' ||
             repeat('x', 130) || '"}}}}', now()
      from made join target t using (place) order by n;
      insert into postrider.queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at)
      select t.bucket, (head || t.delivery_tail)::uuid, (head || '000000000000')::uuid, t.id, t.tenant_id, now(), now()
      from made join target t using (place) order by n;
      commit;
      vacuum analyze postrider.queue;
      vacuum analyze postrider.event;
      checkpoint;""")


def fill_history(cluster, database, count, days=7, chunk=500_000):
    """`count` delivered attempts, spread over the last days and over all endpoints."""
    spread = f"{NOW_MS} - {days} * 86400000 + n * {days} * 86400000 / {count} - n / 4096"
    for start in range(0, count, chunk):
        end = min(count, start + chunk)
        cluster.sql(database, f"""
          begin;
          create temporary table target as
            select row_number() over (order by delivery_tail) - 1 as place, id, bucket, tenant_id, delivery_tail
            from postrider.endpoint where status = 'active';
          insert into postrider.attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome,
                                         status_code, started_at, first_byte_us, total_us, preview, address, node_id,
                                         created_at)
          select (head || t.delivery_tail)::uuid, 1, t.bucket, t.id, (head || '000000000000')::uuid, t.tenant_id,
                 'delivered', 200, now(), 300, 400, 'ok', '127.0.0.1', '018f0000-0000-7000-8000-000000000000', now()
          from (select n, {ID_HEX.format(base_ms=spread)} as head
                from generate_series({start}::bigint, {end} - 1) as n) made
          join target t on t.place = n % (select count(*) from target);
          commit;""")
    cluster.sql(database, "vacuum analyze postrider.attempt; checkpoint;")


def pending(cluster, database):
    """Live queue rows; the sentinels of bucket -1 are not deliveries."""
    return int(cluster.sql(database, "select count(*) from postrider.queue where bucket >= 0"))
