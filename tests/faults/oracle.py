"""Compares the three ledgers: what producers sent and what was acknowledged, what receivers got, and what the database
says in the end. Every rule returns sentences; none means that it holds. Numbers are those of the invariants in README.md."""

import collections
import dataclasses
import datetime
import json

from harness.signatures import standard_signature
from requests_and_rows import CLOCK_SECONDS, READ_LATE_SECONDS, UNSETTLED_SECONDS, is_unsettled, lost_leases, mismatches

SIGNED_SECONDS = 60


@dataclasses.dataclass
class Fault:
    kind: str       # kill, stop, database, registry; lease and stall, as nodes logged them
    start: float    # wall clock
    end: float
    note: str = ""


class Ledgers:
    def __init__(self, world):
        self.world = world
        self.faults = [*world.faults, *(Fault(*found) for found in lost_leases(world.nodes))]
        self.sent = {sent.token: sent for sent in world.sent()}
        self.requests = world.requests()
        self.endpoints = {endpoint.id: endpoint for endpoint in world.endpoints}
        self.by_hook = {hook: endpoint for endpoint in world.endpoints for hook in endpoint.hooks}
        self.events = {}                                        # public ID → row
        self.by_token = collections.defaultdict(list)
        self.created = {}
        for event_id, tenant, body, created_at in world.sql("""
                select coalesce(public_id, 'evt_' || replace(id::text, '-', '')), tenant_id, body, created_at
                from postrider.event"""):
            token = json.loads(body)["data"].get("token")
            self.events[(tenant, event_id)] = body
            self.created[(tenant, event_id)] = created_at.timestamp()
            self.by_token[token].append((tenant, event_id))
        self.attempts = collections.defaultdict(list)           # (tenant, event, endpoint) → rows by number
        for row in world.sql("""
                select 'dlv_' || replace(a.delivery_id::text, '-', ''), a.attempt, coalesce(a.probed_attempt, a.attempt),
                       a.is_probe, a.outcome, a.status_code, a.error,
                       a.started_at, a.total_us / 1e6::float8, a.flags & 2 <> 0, a.next_attempt_at, a.tenant_id,
                       coalesce(e.public_id, 'evt_' || replace(e.id::text, '-', '')), p.public_id,
                       coalesce(a.error_detail, '') like 'canceled by retention%%'
                from postrider.attempt a
                join postrider.event e on e.id = a.event_id
                join postrider.endpoint p on p.id = a.endpoint_id
                order by a.delivery_id, a.attempt"""):
            attempt = Attempt(*row)
            self.attempts[(attempt.tenant, attempt.event, attempt.endpoint)].append(attempt)
        self.dead = set(world.sql("""
                select d.tenant_id, coalesce(e.public_id, 'evt_' || replace(e.id::text, '-', '')), p.public_id
                from postrider.dead_letter d
                join postrider.event e on e.id = d.event_id
                join postrider.endpoint p on p.id = d.endpoint_id"""))
        self.by_delivery = collections.defaultdict(list)        # (tenant, event, endpoint) → requests by time
        for got in self.requests:
            endpoint = self.by_hook[got.hook]
            self.by_delivery[(endpoint.tenant, got.event, endpoint.id)].append(got)

    def rows(self):
        return (row for rows in self.attempts.values() for row in rows)


class Attempt:
    """`number`: 0 for an end without a request, negative for a failed probe. `sent_number`: the `webhook-attempt` header."""

    def __init__(self, delivery, number, sent_number, is_probe, outcome, status, error, started, seconds, is_resent, next_at,
                 tenant, event, endpoint, is_by_retention):
        self.delivery, self.number, self.outcome, self.status, self.error = delivery, number, outcome, status, error
        self.sent_number, self.is_probe, self.seconds, self.is_resent = sent_number, is_probe, seconds, is_resent
        self.started, self.next_at = started.timestamp(), next_at and next_at.timestamp()
        self.tenant, self.event, self.endpoint, self.is_by_retention = tenant, event, endpoint, is_by_retention

    @property
    def is_failed_probe(self):
        return self.number < 0

    def __str__(self):
        kind = f" (probe {-self.number})" if self.is_failed_probe else ""
        return f"#{self.sent_number}{kind} {self.outcome} {self.status or self.error or ''} at {clock(self.started)}"


def clock(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%H:%M:%S.%f")[:-3]


def check(world):
    ledgers = Ledgers(world)
    violations = [violation for rule in (accepted_once, strict_order, *history_rules()) for violation in rule(ledgers)]
    figures = world.figures
    figures["sent"] = len(ledgers.sent)
    figures["unknown"] = sum(1 for sent in ledgers.sent.values() if sent.unknown)
    figures["requests"] = len(ledgers.requests)
    figures["rows"] = len([row for row in ledgers.rows() if row.number != 0])
    figures["failed_probes"] = len([row for row in ledgers.rows() if row.is_failed_probe])
    figures["dead"] = len(ledgers.dead)
    return violations


def history_rules():
    """Those that need no ledger of what was sent."""
    return (nothing_missing, nothing_foreign, duplicates, signatures, attempts_dense, probes_in_place, attempts_earned,
            retries_in_time, caps, requests_are_rows)


def check_history(world):
    ledgers = Ledgers(world)
    return [violation for rule in history_rules() for violation in rule(ledgers)]


# ── 1 and 2 ──

def accepted_once(ledgers):
    """Acknowledged → exactly one event, under the ID in the response; unknown → none or one, per unrepeatable send."""
    for sent in ledgers.sent.values():
        found = ledgers.by_token.get(sent.token, [])
        if len(sent.answers) > 1:
            yield f"1: {sent.token} was acknowledged under several ids: {sent.answers}"
        for answer in sent.answers:
            if (sent.tenant, answer) not in found:
                yield f"1: {sent} was acknowledged, but is no event"
        allowed = 1 if sent.is_repeatable else max(1, sent.sends)
        if len(found) > allowed:
            yield f"2: {sent} became {len(found)} events: {found}"
        if sent.event_id and any(event != sent.event_id for _, event in found):
            yield f"2: {sent} became an event with another id: {found}"
    for token in ledgers.by_token:
        if token not in ledgers.sent:
            yield f"2: an event that nobody sent: {token}"


def nothing_missing(ledgers):
    for tenant, event in ledgers.events:
        for endpoint in ledgers.endpoints.values():
            if endpoint.tenant != tenant:
                continue
            key = (tenant, event, endpoint.id)
            rows, requests = ledgers.attempts.get(key, []), ledgers.by_delivery.get(key, [])
            ends = [row for row in rows if row.outcome != "retrying"]
            was_deleted = endpoint.deleted_at and ledgers.created[(tenant, event)] > endpoint.deleted_at - CLOCK_SECONDS
            if not rows and was_deleted:
                continue
            if not ends:
                yield f"1: {key} is lost: attempts {texts(rows)}, requests {told(requests)}"
            elif len(ends) > 1:
                yield f"5: {key} ended more than once: {texts(rows)}"
            elif ends[0].outcome == "delivered" and not any(got.is_accepted for got in requests):
                yield f"1: {key} counts as delivered, but the receiver accepted nothing: {told(requests)}"
            elif ends[0].outcome == "dead_letter" and key not in ledgers.dead:
                yield f"1: {key} has an attempt that says dead letter, but there is none"
            elif ends[0].outcome == "canceled" and not endpoint.deleted_at and not ends[0].is_by_retention:
                yield f"1: {key} was canceled neither by a person nor by retention"


def nothing_foreign(ledgers):
    """Each request is an accepted event of the hook's own tenant, byte for byte."""
    for got in ledgers.requests:
        endpoint = ledgers.by_hook[got.hook]
        body = ledgers.events.get((endpoint.tenant, got.event))
        if body is None:
            yield f"2: {got.event} arrived at {endpoint.id}, but was never accepted for {endpoint.tenant}"
        elif body.encode() != got.body:
            yield f"3: {got.event} arrived with other bytes than were stored"


# ── 3 ──

def duplicates(ledgers):
    """Requests again after one that the receiver accepted (or that was cut off before its response)."""
    found = 0
    per_fault = collections.Counter()
    for key, requests in ledgers.by_delivery.items():
        if len({got.delivery for got in requests}) > 1:
            yield f"3: {key} came as several deliveries: {told(requests)}"
        for before, after in zip(requests, requests[1:]):
            if before.status is not None and not before.is_accepted:
                continue                 # rejected by the receiver: a retry
            if before.hook.is_hanging and before.status is None:
                continue                 # no response: a retry after the timeout
            found += before.is_accepted
            fault = explanation(ledgers.faults, before, after)
            per_fault[fault and fault.start] += 1
            if fault is None:
                yield (f"3: {key} was sent again without a fault: {told(requests)}; attempts "
                       f"{texts(ledgers.attempts.get(key, []))}; log {ledgers.world.log_of(before.delivery)}")
        yield from after_the_end(ledgers, key, requests)
    ledgers.world.figures["duplicates"] = found
    for fault in ledgers.faults:
        # At most what was in flight, or got its response so shortly before that it was not recorded yet.
        allowed = sum(endpoint.max_in_flight for endpoint in ledgers.endpoints.values())
        allowed += sum(1 for got in ledgers.requests if fault.end - UNSETTLED_SECONDS <= got.at <= fault.end)
        if per_fault[fault.start] > allowed:
            yield f"3: {per_fault[fault.start]} were sent again after {fault}, at most {allowed} were in flight"


def explanation(faults, before, after):
    """The fault by which a node was lost or stopped while `before` may not have been written down yet."""
    for fault in faults:
        if fault.kind in ("lease", "stall"):
            if is_unsettled(before, fault) and after.at >= fault.start:
                return fault
            continue
        if fault.kind == "kill":
            # However late it was read: a dead node has signed nothing.
            is_in_time = before.signed_at <= fault.end and before.at <= fault.end + READ_LATE_SECONDS
        else:
            is_in_time = fault.kind == "stop" and before.at <= fault.end + UNSETTLED_SECONDS
        if is_in_time and before.at >= fault.start - UNSETTLED_SECONDS and after.at >= fault.start:
            return fault
    return None


def after_the_end(ledgers, key, requests):
    """Once a success is written down nothing is sent again; only a stopped node may wake up in the middle of sending."""
    rows = [row for row in ledgers.attempts.get(key, []) if row.outcome == "delivered"]
    if not rows:
        return
    since = rows[0].started - CLOCK_SECONDS
    settled = [got for got in requests if got.is_accepted and got.at >= since and got.signed_at >= int(since)]
    for late in settled[1:]:
        woken = any(fault.kind == "stop" and fault.start <= late.at <= fault.end + UNSETTLED_SECONDS
                    for fault in ledgers.world.faults)
        if not woken and late.at > rows[0].started + CLOCK_SECONDS:
            yield f"3: {key} was sent after it was settled: {told(requests)}; {texts(rows)}"


# ── 4 to 6 ──

def signatures(ledgers):
    for got in ledgers.requests:
        endpoint = ledgers.by_hook[got.hook]
        given = got.headers.get("webhook-signature", "").split(" ")
        if not any(standard_signature(secret, got) in given for secret in endpoint.secrets):
            yield f"4: {got.event} at {endpoint.id} does not verify: {got.headers}"
        if abs(got.at - got.signed_at) > SIGNED_SECONDS:
            yield f"4: {got.event} at {endpoint.id} was signed for another time: {got.headers}"


def attempts_dense(ledgers):
    for key, rows in ledgers.attempts.items():
        numbers = [row.number for row in rows if row.number > 0]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"5: {key} has attempts {texts(rows)}"
        if any(row.outcome != "retrying" for row in rows if 0 < row.number < len(numbers)):
            yield f"5: {key} went on after its end: {texts(rows)}"
        numbers_sent = [got.attempt for got in ledgers.by_delivery.get(key, [])]
        if numbers_sent and (min(numbers_sent) < 1 or max(numbers_sent) > len(numbers) + 1):
            yield f"5: {key} was sent with attempt numbers {numbers_sent}, written down are {texts(rows)}"


def probes_in_place(ledgers):
    """A failed probe has the number of the attempt that it stands for: it was sent after the one before and before that one."""
    for key, rows in ledgers.attempts.items():
        probes = sorted((row for row in rows if row.is_failed_probe), key=lambda row: -row.number)
        started = {row.number: row.started for row in rows if row.number > 0}
        if [-row.number for row in probes] != list(range(1, len(probes) + 1)):
            yield f"5: {key} has probes {texts(probes)}"
        for before, after in zip(probes, probes[1:]):
            if after.started < before.started or after.sent_number < before.sent_number:
                yield f"5: {key} has probes that are not in order: {texts(rows)}"
        for probe in probes:
            is_late = probe.started > started.get(probe.sent_number, float("inf"))
            is_early = probe.sent_number > 1 and probe.started < started.get(probe.sent_number - 1, float("inf"))
            if is_late or is_early or not probe.is_probe or probe.sent_number < 1:
                yield f"5: {key} has a probe with the wrong number: {texts(rows)}"


def attempts_earned(ledgers):
    """A failed attempt in the table is one that the receiver caused; no fault of ours uses attempts up."""
    for key, rows in ledgers.attempts.items():
        endpoint = ledgers.endpoints.get(key[2])
        for row in rows:
            if row.outcome == "delivered" or row.number == 0 or endpoint is None:
                continue
            requests = [got for got in ledgers.by_delivery.get(key, []) if got.attempt == row.sent_number]
            if row.status is not None and any(got.status == row.status for got in requests):
                continue
            error = row.error or ""
            if error.startswith("timeout") and endpoint.hook.is_hanging:
                continue
            if error.startswith("connection") and endpoint.hook.is_refusing:
                continue
            yield f"5: {key} lost an attempt that its receiver did not fail: {row}; requests {told(requests)}"


def retries_in_time(ledgers):
    """Neither an attempt nor a probe is sent before the time that the attempt before it says."""
    for key, rows in ledgers.attempts.items():
        next_at = {row.number: row.next_at for row in rows if row.number > 0}
        for row in rows:
            due = next_at.get(row.sent_number - 1)
            if row.number != 0 and due and row.started < due:
                yield f"6: {key} was retried {due - row.started:.3f} s early: {texts(rows)}"


def caps(ledgers):
    """In flight at most max_in_flight; twice that while a stopped node's connections are still open."""
    for got in ledgers.requests:
        endpoint = ledgers.by_hook[got.hook]
        if got.in_flight <= endpoint.max_in_flight:
            continue
        lost = any(fault.kind == "stop" and fault.start <= got.at <= fault.end + UNSETTLED_SECONDS
                   for fault in ledgers.world.faults)
        if not lost or got.in_flight > 2 * endpoint.max_in_flight:
            yield f"6: {got.in_flight} in flight to {endpoint.id}, allowed are {endpoint.max_in_flight}, {clock(got.at)}"


def strict_order(ledgers):
    """A producer's thread sends an event only after the response to the previous one, so a strict endpoint gets them in that
    order; what is sent again comes after what was sent before."""
    token_of = {key: token for token, keys in ledgers.by_token.items() for key in keys}
    for endpoint in ledgers.endpoints.values():
        if not endpoint.is_strict:
            continue
        last = {}
        seen = set()
        for got in (got for got in ledgers.requests if ledgers.by_hook[got.hook] is endpoint):
            if got.event in seen:
                continue
            seen.add(got.event)
            thread, _, count = token_of[(endpoint.tenant, got.event)].rpartition("-")
            if int(count) < last.get(thread, 0):
                yield f"6: {got.event} reached the strict endpoint {endpoint.id} after a later event"
            last[thread] = int(count)


# ── 10 ──

def requests_are_rows(ledgers):
    """Without a fault, what receivers got is what the history says. After one, a request may lack its row only if its result
    may have been lost in it."""
    for key in ledgers.by_delivery.keys() | ledgers.attempts.keys():
        endpoint = ledgers.endpoints.get(key[2])
        if endpoint is None:
            continue
        requests, rows = ledgers.by_delivery.get(key, []), ledgers.attempts.get(key, [])
        is_listening = not any(hook.is_refusing for hook in endpoint.hooks)
        for sentence in mismatches(requests, rows, is_listening, ledgers.faults):
            yield f"10: {key}: {sentence}; requests {told(requests)}; rows {texts(rows)}"


def texts(rows):
    return [str(row) for row in rows]


def told(requests):
    return [f"#{got.attempt} at {clock(got.at)} answered {got.status}" for got in requests]
