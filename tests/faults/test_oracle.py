"""The oracle itself: after a run in which all is well, each ledger is spoilt in turn, and it has to notice."""

import copy

import oracle
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
        assert bool(oracle.explanation(world, last, copy.copy(last))) == is_explained
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
