"""Matches what receivers got with the history: every request is a row, and every row that reached its receiver is a request.

A request and its row have the same delivery and the same number (the `webhook-attempt` header). Failed probes have the number
of the attempt that they stand for, so several rows may have one number; they follow each other in time."""

import collections
import datetime

CLOCK_SECONDS = 0.25         # between the clocks of the receiver, the node and the database, on one machine
READ_LATE_SECONDS = 5.0      # the receiver's thread may come to what a dead node sent only after its death
UNSETTLED_SECONDS = 6.0      # how long before a fault a request may have ended and still not be in the history

# The connection was there, but the receiver may have closed it before it read the request.
MAY_HAVE_ARRIVED = {"connection_reset", "connection_closed", "timeout_send", "timeout_first_byte", "timeout_response", "not_http",
                    "head_too_large"}
# The whole request was sent, and no response came.
ARRIVED_UNANSWERED = {"timeout_first_byte", "timeout_response"}


class Matching:
    """The requests and the rows of one delivery and number. `extra`: requests without a row; `missing`: rows without the
    request that they are about. `is_listening`: the receiver's port was open all the time."""

    def __init__(self, requests, rows, is_listening):
        self.extra = sorted(requests, key=lambda got: got.at)
        self.missing = []
        sent = [row for row in sorted(rows, key=lambda row: row.started) if row.number != 0]
        for row in sent:
            if not self.take(lambda got, row=row: is_of(got, row)) and has_arrived(row, is_listening):
                self.missing.append(row)
        for row in sent:
            if row.is_resent:    # the first of its two requests, if it arrived
                self.take(lambda got, row=row: is_within(got, row))

    def take(self, is_wanted):
        found = next((got for got in self.extra if is_wanted(got)), None)
        if found is not None:
            self.extra.remove(found)
        return found is not None


def is_of(got, row):
    if row.status is not None:
        return got.status == row.status and got.at >= row.started - CLOCK_SECONDS
    return row.error in MAY_HAVE_ARRIVED and is_within(got, row)


def is_within(got, row):
    """A busy receiver may read a request after the sender has given it up."""
    return row.started - CLOCK_SECONDS <= got.at <= row.started + row.seconds + READ_LATE_SECONDS


def has_arrived(row, is_listening):
    """A port that is closed loses what its backlog had accepted."""
    return row.status is not None or (row.error in ARRIVED_UNANSWERED and is_listening)


def is_unsettled(got, fault):
    """Whether the result of this request may have been lost in this fault."""
    ended = got.answered_at or got.lost_at or float("inf")
    if fault.kind == "kill":     # a dead node has signed nothing
        return (got.signed_at <= fault.end and got.at <= fault.end + READ_LATE_SECONDS
                and ended >= fault.end - UNSETTLED_SECONDS)
    if fault.kind in ("stop", "lease"):
        return got.at <= fault.end + READ_LATE_SECONDS and ended >= fault.start - UNSETTLED_SECONDS
    if fault.kind == "stall":    # a timeout during a stall does not count
        return got.at <= fault.end and ended >= fault.start - CLOCK_SECONDS
    return False


def mismatches(requests, rows, is_listening, faults):
    """Sentences about the deliveries of one event to one endpoint."""
    by_number = collections.defaultdict(lambda: ([], []))
    for got in requests:
        by_number[(got.delivery, got.attempt)][0].append(got)
    for row in rows:
        by_number[(row.delivery, row.sent_number)][1].append(row)
    for (_, number), (sent, written) in sorted(by_number.items()):
        matching = Matching(sent, written, is_listening)
        for row in matching.missing:
            yield f"{row} is in the history, but its receiver did not get it"
        for got in matching.extra:
            if not any(is_unsettled(got, fault) for fault in faults):
                yield f"#{number}, answered {got.status}, is not in the history"


def lost_leases(nodes):
    """(kind, start, end) of leases that were lost and of times when a process stood still, as nodes logged them."""
    for node in nodes:
        for entry in list(node.log):
            at = datetime.datetime.fromisoformat(entry["time"]).timestamp()
            if entry["event"] in ("node_was_declared_dead", "bucket_lost"):
                yield "lease", at - node.settings["lease_seconds"], at
            elif entry["event"] == "process_stalled":
                yield "stall", at - entry["seconds"], at
