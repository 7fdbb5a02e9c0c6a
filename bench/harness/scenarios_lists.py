"""Pages of every list and filter, on a history of millions of attempts and a hundred thousand endpoints."""

import http.client
import json
import time

# All of it by SQL: what is measured is reading. Tenant l0 has a tenth of everything, the other 1,999 share the rest;
# one attempt in 100 is a dead letter, one in 1,000 was canceled, one event in 50 has a subject.
REGISTER = """
  insert into postrider.tenant (id, endpoint_count) select 'l' || t, {endpoints} / 2000 from generate_series(0, 1999) t;
  insert into postrider.endpoint (id, public_id, tenant_id, bucket, delivery_tail, url)
  select md5('list' || n)::uuid, 'ep_' || md5('list' || n), 'l' || n % 2000, n % 64, left(md5('list' || n), 12),
         'https://h' || n % 5000 || '.example.com/in'
  from generate_series(0, {endpoints} - 1) n;
  analyze postrider.endpoint;"""
FILL = """
  begin;
  set local synchronous_commit = off;
  create temporary table made on commit drop as
    select n, lpad(to_hex({spread} + n / 4096), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || 'bfff' as head,
           case when n % 10 = 0 then (n / 10 % ({endpoints} / 2000)) * 2000 else n % {endpoints} end as place
    from generate_series({start}::bigint, {end} - 1) as n;
  insert into postrider.event (id, tenant_id, type, subject, body, created_at)
  select (head || '000000000000')::uuid, 'l' || place % 2000, 'list.t' || n % 20,
         case when n % 50 = 0 then 'subject-' || n / 500 end, '{{}}', postrider.id_time((head || '000000000000')::uuid)
  from made;
  insert into postrider.attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, status_code,
                                 started_at, total_us, preview, node_id, created_at)
  select (head || left(md5('list' || place), 12))::uuid, 1, place % 64, md5('list' || place)::uuid,
         (head || '000000000000')::uuid, 'l' || place % 2000,
         case when n % 100 = 7 then 'dead_letter' when n % 1000 = 13 then 'canceled' else 'delivered' end, 200,
         postrider.id_time((head || '000000000000')::uuid), 400, 'ok', '018f0000-0000-7000-8000-000000000000',
         postrider.id_time((head || '000000000000')::uuid)
  from made;
  insert into postrider.dead_letter (delivery_id, bucket, endpoint_id, event_id, tenant_id, cause, attempts, created_at)
  select (head || left(md5('list' || place), 12))::uuid, place % 64, md5('list' || place)::uuid,
         (head || '000000000000')::uuid, 'l' || place % 2000, (array['rejected', 'exhausted'])[1 + n % 2], 1, now()
  from made where n % 100 = 7;
  commit;"""
QUEUE = """
  insert into postrider.queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at)
  select place % 64, (lpad(to_hex({now_ms} + 1000 + n / 4096), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || 'bffe'
         || left(md5('list' || place), 12))::uuid, gen_random_uuid(), md5('list' || place)::uuid, 'l' || place % 2000,
         now() + interval '1 day', now()
  from (select n, case when n % 2 = 0 then 0 else n % {endpoints} end as place from generate_series(1, {pending}) n) made;
  vacuum analyze postrider.queue; vacuum analyze postrider.attempt; analyze postrider.event;
  analyze postrider.dead_letter; checkpoint;"""
# Messages of the last six days, one in 100 dead; audit entries, one in ten of tenant l0.
MESSAGES = """
  insert into postrider.source (id, provider) values ('lists', 'github');
  insert into postrider.inbox (id, source_id, provider_id, bucket, headers, body, status, dead_at)
  select (lpad(to_hex({now_ms} - 6 * 86400000::bigint + n * (6 * 86400000::bigint / {rows})), 12, '0') || '7000bfff'
          || lpad(to_hex(n), 12, '0'))::uuid, 'lists', 'm' || n, n % 64, '{{}}', '{{"n":1}}',
         case when n % 100 = 7 then 'dead' else 'done' end, case when n % 100 = 7 then now() end
  from generate_series(1, {rows}) n;
  insert into postrider.audit (at, actor_kind, actor, action, tenant_id, object)
  select now() - n * interval '1 second', 'key', 'key_' || n % 50, (array['endpoint.pause', 'endpoint.update'])[1 + n % 2],
         'l' || case when n % 10 = 0 then 0 else n % 2000 end, 'ep_' || md5('list' || n % 1000)
  from generate_series(1, {rows}) n;
  analyze postrider.inbox; analyze postrider.audit;"""
NOW_MS = "(extract(epoch from now()) * 1000)::bigint"


def targets(endpoint, event, span):
    """Name → target of a first page. `span`: two hours in the middle, as parameters."""
    of_tenant = "/v1/tenants/l0"
    pages = {}
    for scope, base in (("all", "/v1"), ("tenant", of_tenant), ("small tenant", "/v1/tenants/l77")):
        pages[f"deliveries, {scope}"] = f"{base}/deliveries"
        for status in ("pending", "processing", "retrying", "delivered", "dead_letter", "canceled"):
            pages[f"deliveries, {scope}, {status}"] = f"{base}/deliveries?status={status}"
        pages[f"deliveries, {scope}, type"] = f"{base}/deliveries?type=list.t3"
        pages[f"deliveries, {scope}, unused type"] = f"{base}/deliveries?type=list.none"
        pages[f"deliveries, {scope}, time"] = f"{base}/deliveries?{span}"
        pages[f"deliveries, {scope}, time, type, dead_letter"] = f"{base}/deliveries?{span}&type=list.t3&status=dead_letter"
        pages[f"deliveries, {scope}, subject"] = f"{base}/deliveries?subject=subject-0"
        pages[f"attempts, {scope}"] = f"{base}/attempts"
        for outcome in ("delivered", "retrying", "dead_letter", "canceled"):
            pages[f"attempts, {scope}, {outcome}"] = f"{base}/attempts?outcome={outcome}"
        pages[f"attempts, {scope}, type"] = f"{base}/attempts?type=list.t3"
        pages[f"attempts, {scope}, time"] = f"{base}/attempts?{span}"
        pages[f"attempts, {scope}, unused status code"] = f"{base}/attempts?status_code=299"
        pages[f"dead letters, {scope}"] = f"{base}/dead-letters"
        pages[f"dead letters, {scope}, cause"] = f"{base}/dead-letters?cause=exhausted&resolved=false"
        pages[f"dead letters, {scope}, time"] = f"{base}/dead-letters?{span}"
        pages[f"dead letters, {scope}, summary"] = f"{base}/dead-letters/summary"
    pages |= {
        "deliveries, endpoint": f"/v1/deliveries?endpoint={endpoint}",
        "deliveries, endpoint, dead_letter": f"/v1/deliveries?endpoint={endpoint}&status=dead_letter",
        "deliveries, endpoint, pending": f"/v1/deliveries?endpoint={endpoint}&status=pending",
        "deliveries, event": f"{of_tenant}/deliveries?event={event}",
        "deliveries, event and endpoint": f"{of_tenant}/deliveries?event={event}&endpoint={endpoint}",
        "attempts, endpoint": f"/v1/attempts?endpoint={endpoint}",
        "attempts, event": f"{of_tenant}/attempts?event={event}",
        "events": f"{of_tenant}/events",
        "deliveries, endpoint, time, type": f"/v1/deliveries?endpoint={endpoint}&{span}&type=list.t3",
        "dead letters, endpoint": f"/v1/dead-letters?endpoint={endpoint}",
        "events, type": f"{of_tenant}/events?type=list.t3",
        "events, time": f"{of_tenant}/events?{span}",
        "events, subject": f"{of_tenant}/events?subject=subject-0",
        "one event": f"{of_tenant}/events/{event}",
        "endpoints": f"{of_tenant}/endpoints",
        "endpoints, event type": f"{of_tenant}/endpoints?event_type=list.t3",
        "endpoints, status": f"{of_tenant}/endpoints?status=disabled",
        "endpoints, URL": f"{of_tenant}/endpoints?url=https://h0.example.com/in",
        "tenants": "/v1/tenants",
        "replays": f"{of_tenant}/replays",
        "messages": "/v1/sources/lists/messages",
        "messages, dead": "/v1/sources/lists/messages?status=dead",
        "messages, pending": "/v1/sources/lists/messages?status=pending",
        "messages, time": f"/v1/sources/lists/messages?{span}",
        "audit": "/v1/audit",
        "audit, tenant": "/v1/audit?tenant=l0",
        "audit, object": f"/v1/audit?object={endpoint}",
        "audit, action": "/v1/audit?action=endpoint.pause",
        "search, id": f"/v1/search?q={event}",
        "search, subject": "/v1/search?q=subject-0",
        "search, host": "/v1/search?q=h17.example.com",
        "stats": "/v1/stats",
    }
    return pages


def timed_pages(node, target, count):
    """Milliseconds of `count` pages: following the cursor, from the start again at the end."""
    host, port = node.address.split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    times, cursor = [], None
    for _ in range(count):
        path = target + (("&" if "?" in target else "?") + f"cursor={cursor}" if cursor else "")
        began = time.monotonic()
        connection.request("GET", path, headers={"authorization": f"Bearer {node.KEY}"})
        answer = connection.getresponse()
        text = answer.read()
        times.append((time.monotonic() - began) * 1000)
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {text[:300]!r}")
        cursor = json.loads(text).get("next_cursor")
    connection.close()
    return times


def p99(times):
    return sorted(times)[max(0, int(len(times) * 0.99 + 0.5) - 1)]


def lists(env):
    sizes, endpoints, chunk = env.sizes, env.sizes.list_endpoints, 500_000
    with env.database("migrated") as database:
        run = lambda text: env.cluster.sql(database, text)
        run(REGISTER.format(endpoints=endpoints))
        now_ms = int(run(f"select {NOW_MS}"))
        days_ms = 6 * 86_400_000
        for start in range(0, sizes.list_attempts, chunk):
            end = min(sizes.list_attempts, start + chunk)
            spread = f"{now_ms} - {days_ms} + n * {days_ms} / {sizes.list_attempts} - n / 4096"
            run(FILL.format(spread=spread, endpoints=endpoints, start=start, end=end))
        run(MESSAGES.format(now_ms=now_ms, rows=max(1000, sizes.list_attempts // 10)))
        run(QUEUE.format(now_ms=now_ms, endpoints=endpoints, pending=sizes.list_pending))
        event = run("select 'evt_' || replace(id::text, '-', '') from postrider.event where tenant_id = 'l0' "
                    "order by id desc limit 1").strip()
        endpoint = run("select 'ep_' || md5('list0')").strip()
        middle = time.gmtime(now_ms / 1000 - 3 * 86_400)
        span = time.strftime("since=%Y-%m-%dT%H:00:00Z&", middle) + time.strftime("until=%Y-%m-%dT%H:59:59Z", middle)
        worst, slow = ("", 0.0), []
        with env.node(database) as node:
            for name, target in targets(endpoint, event, span).items():
                timed_pages(node, target, 5)  # warm
                times = timed_pages(node, target, sizes.list_pages)
                value = p99(times)
                env.say(f"{name}: p50 {sorted(times)[len(times) // 2]:.1f} ms, p99 {value:.1f} ms")
                worst = max(worst, (name, value), key=lambda each: each[1])
                if value > 50:
                    slow.append(f"{name} {value:.0f} ms")
    env.add(f"a page of every list and filter: {sizes.list_attempts:,} attempts, {endpoints:,} endpoints", "p99 ≤ 50 ms",
            f"{worst[1]:.1f} ms", worst[1] <= 50,
            f"slowest: {worst[0]}" + (f"; over the target: {', '.join(slow)}" if slow else ""))
