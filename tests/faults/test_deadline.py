"""An endpoint that is down for longer than the deadline: each delivery ends in time and is not sent afterwards."""

import time

import pytest

import oracle
from harness.wait import wait_until

TIMEOUT = 2           # seconds
GRACE = 60            # seconds


class Outage:
    """One endpoint with its deadline, and the results of its deliveries."""

    def __init__(self, world, deadline):
        self.world, self.deadline = world, deadline
        self.tenant = world.tenant(f"d{deadline}")
        self.endpoint = world.endpoint(self.tenant, give_up_seconds=deadline, timeout_ms=TIMEOUT * 1000, max_attempts=100,
                                       max_in_flight=4)
        self.hook = self.endpoint.hook
        self.published = 0

    def publish(self, count):
        for _ in range(count):
            self.world.api.publish(self.tenant)
        self.published += count

    def begin(self, pending):
        """So slow at first that most of these are not sent before it."""
        self.hook.behave = lambda got: (204, 0.5)
        self.publish(pending)
        self.hook.behave = lambda got: 503

    def end(self):
        """What has expired does not come back, even if the deadline of an event published from now on is far away."""
        path = f"/v1/tenants/{self.tenant}/endpoints/{self.endpoint.id}"
        self.world.api.call("PATCH", path, {"give_up_seconds": 3600}).expect(200)
        self.hook.recover()
        self.publish(1)

    def pending(self):
        return self.world.sql("select count(*) from postrider.queue where tenant_id = %s", (self.tenant,))[0][0]

    def figures(self):
        letters = self.world.sql("""select postrider.public_id_of('dlv', delivery_id), cause, created_at, dead_at
                                    from postrider.dead_letter where tenant_id = %s""", (self.tenant,))
        rows = dict(self.world.sql("""select case when attempt < 0 then 'failed_probe' else outcome end,
                                             count(*) + count(*) filter (where flags & 2 <> 0)
                                      from postrider.attempt where tenant_id = %s and attempt <> 0 group by 1""",
                                   (self.tenant,)))
        ended_at = {delivery: dead_at.timestamp() for delivery, _, _, dead_at in letters}
        ages = [(dead_at - created_at).total_seconds() for _, _, created_at, dead_at in letters]
        requests = list(self.hook.requests)
        return {"published": self.published, "delivered": rows.get("delivered", 0), "expired": len(letters),
                "other_causes": len([cause for _, cause, _, _ in letters if cause != "expired"]),
                "oldest_s": round(max(ages), 1),
                "past_limit": len([age for age in ages if age > self.deadline + TIMEOUT + GRACE]),
                "sent_after_expired": len([got for got in requests if is_after(got, ended_at.get(got.delivery))]),
                "requests": len(requests), "rows": sum(rows.values()), "failed_probes": rows.get("failed_probe", 0)}


def is_after(got, ended_at):
    """Each request against the end of its own delivery."""
    return ended_at is not None and got.at > ended_at + oracle.CLOCK_SECONDS


@pytest.mark.parametrize("breaker_failures", (1, 5, 10000))
def test_an_outage_longer_than_the_deadline(make_world, is_short, breaker_failures):
    world = make_world(f"test_an_outage_longer_than_the_deadline/{breaker_failures}", breaker_failures=breaker_failures)
    world.start_node()
    deadlines, batch = ((5, 15), 40) if is_short else ((15, 60), 200)
    outages = [Outage(world, deadline) for deadline in deadlines]
    for each in outages:
        each.publish(batch)
    wait_until(lambda: not any(each.pending() for each in outages), "what came before the outage is delivered")
    for each in outages:
        each.begin(batch // 2)
    began = time.monotonic()
    while time.monotonic() - began < max(deadlines) + 1:
        for each in outages:
            each.publish(5)
        wait_until(lambda at=time.monotonic(): time.monotonic() > at + 0.5, "the outage goes on")
    wait_until(lambda: not any(each.pending() for each in outages), "everything has expired", 180)
    for each in outages:
        each.end()
    # The endpoints are probed again within the longest interval between probes that an outage this short leads to.
    wait_until(lambda: not any(each.pending() for each in outages), "what came afterwards is delivered", 240)
    violations = oracle.check_history(world)
    assert not violations, world.explain(violations)
    for each in outages:
        figures = each.figures()
        print(f"breaker_failures={breaker_failures} deadline={each.deadline}s {figures}")
        world.figures[f"deadline {each.deadline} s"] = figures
        assert figures["past_limit"] == figures["sent_after_expired"] == figures["other_causes"] == 0, figures
        assert figures["expired"] > 0 and figures["delivered"] + figures["expired"] == figures["published"], figures
        assert each.hook.requests[-1].is_accepted, figures
        assert figures["requests"] == figures["rows"], figures
