"""Tenants that do nothing wrong, and the times that they see."""

import http.client
import itertools
import json
import threading
import time

EVENTS_PER_SECOND = 10      # of each tenant


class HealthyTenant:
    """Publishes at a steady rate over one kept connection, and remembers when each event was sent."""

    def __init__(self, experiment, name):
        self.experiment, self.name = experiment, name
        experiment.api.create_tenant(name)
        self.hook = experiment.receiver.hook()
        self.hook.secrets.append(experiment.api.create_endpoint(name, self.hook.url)["secret"])
        self.key = experiment.api.post("/v1/keys", {"role": "publisher", "tenant_id": name}).expect(201)["key"]
        self.sent = {}          # event id → (phase, when it was sent, when it was accepted)
        self.refused = []       # (phase, status or error)
        self._connection = None
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        self.experiment.run_first()
        due = time.monotonic()
        for number in itertools.count():
            due += 1 / EVENTS_PER_SECOND
            if self.experiment.stopping.wait(max(0, due - time.monotonic())):
                return
            due = max(due, time.monotonic() - 1)   # after a stall: no burst
            self._publish(number)

    def _publish(self, number):
        phase, start = self.experiment.phase, time.monotonic()
        body = json.dumps({"type": "invoice.paid", "data": {"number": number, "filler": "x" * 300}}).encode()
        try:
            if self._connection is None:
                host, _, port = self.experiment.node.address.rpartition(":")
                self._connection = http.client.HTTPConnection(host, int(port), timeout=30)
            self._connection.request("POST", f"/v1/tenants/{self.name}/events", body,
                                     {"authorization": f"Bearer {self.key}", "content-type": "application/json"})
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection = None
            self.refused.append((phase, repr(error)))
            return
        if answer.status == 202:
            self.sent[json.loads(content)["id"]] = (phase, start, time.monotonic())
        else:
            self.refused.append((phase, answer.status))

    def latencies(self, phase):
        """Seconds until the response, and until the receiver had it."""
        mine = {event: times for event, times in self.sent.items() if times[0] == phase}
        answers = [accepted - start for _, start, accepted in mine.values()]
        arrivals = [self.hook.arrived[event] - start for event, (_, start, _) in mine.items() if event in self.hook.arrived]
        return answers, arrivals

    def missing(self):
        return [event for event in self.sent if event not in self.hook.arrived]


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")
