"""An endpoint that is down for longer than the deadline: each delivery ends in time and is not sent afterwards."""

import collections
import time

import pytest

from harness.wait import wait_until

DEADLINES = (5, 15)   # seconds
TIMEOUT = 2           # seconds
GRACE = 60            # seconds
BATCH = 40            # events


class Outage:
    """One endpoint with its deadline, and when each delivery was received."""

    def __init__(self, node, receiver, deadline):
        self.node, self.deadline, self.hook = node, deadline, receiver.hook()
        self.tenant = f"d{deadline}"
        node.api.create_tenant(self.tenant)
        node.api.create_endpoint(self.tenant, self.hook.url, give_up_seconds=deadline, timeout_ms=TIMEOUT * 1000,
                                 max_attempts=100, retry_schedule=[1])
        self.published = 0

    def publish(self, count):
        for _ in range(count):
            self.node.api.publish(self.tenant)
        self.published += count

    def pending(self):
        return self.node.sql("select count(*) from postrider.queue where tenant_id = %s", (self.tenant,))[0][0]

    def figures(self, expired_at):
        """`expired_at`: when the outage had ended and everything had expired, by the receiver's clock."""
        letters = self.node.sql("""select postrider.public_id_of('evt', event_id), cause,
                                          extract(epoch from dead_at - created_at)::float
                                   from postrider.dead_letter where tenant_id = %s""", (self.tenant,))
        ended = self.node.sql("""select count(*), count(distinct delivery_id) from postrider.attempt
                                 where tenant_id = %s and outcome in ('delivered', 'dead_letter')""", (self.tenant,))[0]
        delivered = self.node.sql("""select postrider.public_id_of('evt', event_id) from postrider.attempt
                                     where tenant_id = %s and outcome = 'delivered'""", (self.tenant,))
        expired = {event for event, _, _ in letters}
        late = [age for _, _, age in letters if age > self.deadline + TIMEOUT + GRACE]
        after = [got for got in self.hook.requests if got.at > expired_at and got.headers["webhook-id"] in expired]
        received = collections.Counter(got.headers["webhook-id"] for got in self.hook.requests)
        is_equal = (ended == (self.published, self.published) and len(letters) + len(delivered) == self.published
                    and all(received[event] for event, in delivered))
        return {"published": self.published, "delivered": len(delivered), "expired": len(letters),
                "other_causes": len([cause for _, cause, _ in letters if cause != "expired"]),
                "oldest_s": round(max(age for _, _, age in letters), 1), "past_limit": len(late),
                "sent_after_expired": len(after), "ledger_is_history": is_equal}


@pytest.mark.parametrize("breaker_failures", (1, 5, 10000))
def test_an_outage_longer_than_the_deadline(start_node, database_url, receiver, breaker_failures):
    node = start_node(database_url=database_url, breaker_failures=breaker_failures)
    outages = [Outage(node, receiver, deadline) for deadline in DEADLINES]
    for each in outages:
        each.publish(BATCH)
    wait_until(lambda: not any(each.pending() for each in outages), "what came before the outage is delivered")
    for each in outages:
        each.hook.reply(then=503)
    began = time.monotonic()
    while time.monotonic() - began < max(DEADLINES) + 1:
        for each in outages:
            each.publish(5)
        wait_until(lambda at=time.monotonic(): time.monotonic() > at + 0.5, "the outage goes on")
    wait_until(lambda: not any(each.pending() for each in outages), "everything has expired", 180)
    expired_at = time.monotonic()
    for each in outages:
        each.hook.reply(then=204)
        each.publish(1)
    # The endpoints are probed again within the longest interval between probes that an outage this short leads to.
    wait_until(lambda: not any(each.pending() for each in outages), "what came afterwards has ended", 180)
    for each in outages:
        figures = each.figures(expired_at)
        print(f"breaker_failures={breaker_failures} deadline={each.deadline}s {figures}")
        assert figures["past_limit"] == figures["sent_after_expired"] == figures["other_causes"] == 0, figures
        assert figures["ledger_is_history"] and figures["expired"] > 0, figures
