"""The oracle itself: after a run in which all is well, each ledger is spoilt in turn, and it has to notice."""

import copy
import time

import oracle
from harness.wait import wait_until
from world import Fault


def test_the_oracle_notices_what_is_wrong(world):
    world.start_node()
    tenant, other = world.tenant("a"), world.tenant("b")
    plain = world.endpoint(tenant, behave=lambda got: 503 if got.attempt == 1 and len(plain.hook.requests) < 3 else 204)
    strict = world.endpoint(tenant, ordering="strict", max_in_flight=1)
    foreign = world.endpoint(other)
    world.produce([tenant], threads=1).wait_acknowledged(20)
    world.finish()
    assert oracle.check(world) == []

    def notices(number, spoil):
        """Spoils what it is given by hand and wants a sentence about invariant `number`."""
        kept = {endpoint.id: list(endpoint.hook.requests) for endpoint in world.endpoints}
        sent = copy.deepcopy(world.producers[0].sent)
        spoil()
        found = oracle.check(world)
        assert any(sentence.startswith(f"{number}:") for sentence in found), (number, found)
        for endpoint in world.endpoints:
            endpoint.hook.requests[:] = kept[endpoint.id]
        world.producers[0].sent[:] = sent

    def replace(hook, place, **changes):
        hook.requests[place] = copy.copy(hook.requests[place])
        vars(hook.requests[place]).update(changes)

    last = strict.hook.requests[-1]
    changed = {**last.headers, "webhook-timestamp": str(int(last.headers["webhook-timestamp"]) + 1)}
    notices(1, lambda: world.producers[0].sent[3].answers.add("evt_never"))
    notices(2, lambda: world.producers[0].sent.pop(5))
    notices(2, lambda: foreign.hook.requests.append(moved(last, foreign.hook)))
    notices(3, lambda: strict.hook.requests.append(copy.copy(last)))
    # A node that was lost explains what it sent, however late that was read, and nothing that was signed afterwards.
    for lost_at, is_explained in ((last.signed_at - 1, False), (last.signed_at, True)):
        world.faults[:] = [Fault("kill", lost_at, lost_at)]
        assert bool(oracle.explanation(world.faults, last, copy.copy(last))) == is_explained
    world.faults.clear()
    notices(3, lambda: replace(strict.hook, -1, body=last.body + b" "))
    notices(4, lambda: replace(strict.hook, -1, headers=changed))
    notices(5, lambda: replace(strict.hook, -1, headers={**last.headers, "webhook-attempt": "3"}))
    notices(5, lambda: replace(plain.hook, 0, status=500))
    notices(6, lambda: replace(strict.hook, -1, in_flight=2))
    notices(6, lambda: replace(strict.hook, -1, at=strict.hook.requests[0].at - 1))

    world.sql("update postrider.attempt set started_at = started_at - interval '1 minute' where attempt = 2")
    assert any(sentence.startswith("6:") and "early" in sentence for sentence in oracle.check(world))
    world.sql("delete from postrider.attempt where attempt = 1 and outcome = 'retrying'")
    assert any(sentence.startswith("5:") for sentence in oracle.check(world))
    world.sql("delete from postrider.attempt where outcome = 'delivered'")
    assert any(sentence.startswith("1:") and "lost" in sentence for sentence in oracle.check(world))


def moved(got, hook):
    got = copy.copy(got)
    got.hook = hook
    return got


def failed_probes(world):
    return world.sql("select count(*) from postrider.attempt where attempt < 0")[0][0]


def test_the_oracle_compares_each_request_with_its_row(make_world):
    """The history of an endpoint whose breaker opened; then rows and requests are spoilt one at a time."""
    world = make_world(breaker_failures=2)
    world.start_node()
    tenant = world.tenant("a")
    failing = world.endpoint(tenant, behave=lambda got: 503)
    world.endpoint(tenant)
    world.produce([tenant], threads=1, per_second=20).wait_acknowledged(20)
    wait_until(lambda: failed_probes(world) >= 1, "a probe failed", 60)
    failing.hook.recover()
    assert world.finish()["failed_probes"] >= 1
    requests = failing.hook.requests
    kept = list(requests)

    def complaints():
        return [sentence for sentence in oracle.check(world) if sentence.startswith("10:")]

    def spoilt(spoil, faults=()):
        """What rule 10 says of requests that were changed by hand."""
        spoil()
        world.faults[:] = faults
        found = complaints()
        requests[:] = kept
        world.faults.clear()
        return found

    def again():
        requests.append(copy.copy(kept[-1]))

    delivery = kept[-1].delivery
    assert complaints() == []
    assert "is not in the history" in spoilt(again)[0]
    assert "did not get it" in spoilt(lambda: requests.pop(0))[0]

    # A fault explains a request whose result may have been lost in it, and no other.
    at = kept[-1].at
    for kind in ("kill", "stop", "lease", "stall"):
        assert spoilt(again, [Fault(kind, at, at + 1)]) == [], kind
        assert spoilt(again, [Fault(kind, at + 60, at + 61)]) != [], kind
        assert spoilt(again, [Fault(kind, at - 61, at - 60)]) != [], kind
    assert spoilt(again, [Fault("database", at, at + 1)]) != []
    world.nodes[0].log.append({"event": "node_was_declared_dead", "time": oracle_time(at + 1)})
    assert spoilt(again) == [], "a lost lease that the node logged"
    world.nodes[0].log.pop()

    # A row that was sent again stands for two requests.
    world.sql("update postrider.attempt set flags = flags | 2 where postrider.public_id_of('dlv', delivery_id) = %s",
              (delivery,))
    assert spoilt(again) == []
    assert complaints() == [], "the first request may not have arrived"
    world.sql("update postrider.attempt set flags = 0")

    # A probe belongs to the number that it was sent with, and without its row its request is not in the history.
    world.sql("update postrider.attempt set probed_attempt = probed_attempt + 1 where attempt = -1")
    assert complaints()
    assert any(sentence.startswith("5:") and "probe" in sentence for sentence in oracle.check(world))
    world.sql("update postrider.attempt set probed_attempt = probed_attempt - 1 where attempt = -1")
    world.sql("update postrider.attempt set error = 'connection_refused', status_code = null where attempt = -1")
    assert "is not in the history" in complaints()[0]
    world.sql("delete from postrider.attempt where attempt = -1")
    assert "is not in the history" in complaints()[0]


def oracle_time(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
