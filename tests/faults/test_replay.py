"""A long replay while the node that works on it is killed."""

import datetime
import time

from harness.wait import wait_until

ENDPOINTS = 20
IN_FLIGHT = 50      # of each


def make_dead_letters(world, tenant, count):
    """As the engine leaves them: event, last attempt, dead letter; the ids are those of the last ten minutes."""
    world.sql("""
        with made as (
          select n, e.id as endpoint_id, e.bucket, e.delivery_tail,
                 (lpad(to_hex((extract(epoch from now()) * 1000)::bigint - 600000 + n), 12, '0') || '7000bffd'
                  || lpad(to_hex(n), 12, '0'))::uuid as event_id
          from generate_series(1, %(count)s) as n
          join (select *, row_number() over (order by id) as number from postrider.endpoint where tenant_id = %(tenant)s) e
            on e.number = 1 + n %% %(endpoints)s
        ),
        delivery as (
          select *, (left(replace(event_id::text, '-', ''), 20) || delivery_tail)::uuid as id from made
        ),
        event as (
          insert into postrider.event (id, tenant_id, type, body)
          select event_id, %(tenant)s, 'order.sent', format('{"data":{"number":%%s}}', n) from delivery
        ),
        attempt as (
          insert into postrider.attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, started_at,
                                         total_us, node_id, created_at)
          select id, 1, bucket, endpoint_id, event_id, %(tenant)s, 'dead_letter', now(), 1, gen_random_uuid(), now()
          from delivery
        )
        insert into postrider.dead_letter (delivery_id, bucket, endpoint_id, event_id, tenant_id, cause, attempts, created_at)
        select id, bucket, endpoint_id, event_id, %(tenant)s, 'exhausted', 1, now() from delivery""",
              {"count": count, "tenant": tenant, "endpoints": ENDPOINTS})


def rate_seen(world, replay):
    """The most deliveries that the replay made within one second; ids count milliseconds."""
    [(most,)] = world.sql("""
        select max(beside) from (
          select count(*) over (order by postrider.id_time(delivery_id) range interval '999 milliseconds' preceding) as beside
          from postrider.replayed where replay_id = substr(%s, 5)::uuid) as r""", (replay,))
    return most


def test_a_replay_survives_that_its_node_is_killed_twice(make_world, sized):
    count = sized(short=2_000, full=100_000)
    rate = min(2_500, count // 10)
    patience = 120 + count / 100  # a busy machine's receivers take some hundred a second
    world = make_world(lease_seconds=2)
    world.start_node()
    tenant = world.tenant("a")
    for _ in range(ENDPOINTS):
        world.endpoint(tenant, max_in_flight=IN_FLIGHT)
    make_dead_letters(world, tenant, count)
    since = (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)).isoformat()
    asked = world.api.post(f"/v1/tenants/{tenant}/replays", {
        "only": "failed", "since": since, "reason": "after the outage", "rate_per_second": rate}).expect(202)["id"]
    start = time.monotonic()

    def seen():
        return world.api.get(f"/v1/tenants/{tenant}/replays/{asked}").expect(200)

    unsettled = 0   # sent, and not yet written down when the node died
    for share in sorted(world.random.uniform(0.1, 0.6) for _ in range(2)):
        now = wait_until(lambda: (lambda s: s if s["queued"] >= share * count else None)(seen()), f"{share:.0%} are queued",
                         patience)
        assert now["status"] == "running"
        world.kill(world.nodes[-1])
        [(settled,)] = world.sql("select count(*) from postrider.attempt where outcome = 'delivered'")
        unsettled += max(0, len({request.event for request in world.requests()}) - settled)
        world.start_node()
    done = wait_until(lambda: (lambda s: s if s["status"] == "completed" and s["pending"] == 0 else None)(seen()),
                      "the replay is done and everything of it has ended", patience)
    world.figures |= {"replayed": done["queued"], "seconds": round(time.monotonic() - start, 1)}

    assert (done["matched"], done["queued"], done["delivered"], done["failed"]) == (count, count, count, 0)
    assert world.sql("select count(*) from postrider.dead_letter where resolution is distinct from 'replayed'") == [(0,)]
    assert world.sql("select count(*), count(distinct event_id) from postrider.replayed") == [(count, count)]
    got = world.requests()
    assert len({request.event for request in got}) == count
    # One POST may be repeated for each that was not settled or was in flight when a node died, never more.
    world.figures["repeated"] = repeated = len(got) - count
    world.figures["unsettled"] = unsettled
    assert repeated <= unsettled + 2 * ENDPOINTS * IN_FLIGHT
    world.figures["most_per_second"] = most = rate_seen(world, asked)
    assert most <= rate * 1.2 + 1  # a fifth of a second's worth may be saved up
    assert world.queued() == 0
