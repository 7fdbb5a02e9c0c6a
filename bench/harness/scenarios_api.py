"""The rows of the result table that are about the API in front of publishing: keys, limits, schemas."""

import http.client
import json

from .measure import compare_rates, sustained

TENANTS, TYPES = 100, 10  # what every database of a run is made with
LIMITS = {"publish_rate_per_second": 1_000_000, "payload_bytes_max": 65_536, "max_in_flight": 4_096}
NO_LIMITS = {name: None for name in LIMITS}
# What the load generator sends.
SCHEMA = {"type": "object", "required": ["bench_seq"],
          "properties": {"bench_seq": {"type": "integer", "minimum": 0}, "pad": {"type": "string", "maxLength": 4096}}}


def call(node, method, path, document):
    connection = http.client.HTTPConnection(*node.address.split(":"), timeout=60)
    try:
        headers = {"authorization": f"Bearer {node.KEY}", "content-type": "application/json"}
        connection.request(method, path, json.dumps(document), headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]!r}")
    return json.loads(text)


def set_limits(node, limits):
    for number in range(TENANTS):
        call(node, "PATCH", f"/v1/tenants/bench-{number}", limits)


def set_validation(node, validation):
    for number in range(TYPES):
        call(node, "PUT", f"/v1/event-types/bench.e{number}",
             {"validation": validation, "versions": [{"version": "1", "schema": SCHEMA}]})


def full_api(env):
    """By turns: the admin key without limits; a publisher's key with limits everywhere; the same with schemas."""
    seconds = max(3, env.sizes.sustained_s / 3)
    plain, full, judged = [], [], []
    with env.database() as database, env.node(database) as node:
        made = call(node, "POST", "/v1/keys", {"role": "publisher", "rate_per_second": 1_000_000})
        for _ in range(2):
            set_limits(node, NO_LIMITS)
            set_validation(node, "off")
            plain.append(sustained(env, node, seconds=seconds))
            set_limits(node, LIMITS)
            full.append(sustained(env, node, seconds=seconds, key=made["key"]))
            set_validation(node, "reject")
            judged.append(sustained(env, node, seconds=seconds, key=made["key"]))
    for result in full + judged:
        if result.rejected:
            env.note(f"full API: {result.rejected} publishes were rejected")
    best = [max(rounds, key=lambda result: result.per_s) for rounds in (plain, full, judged)]
    words, met = compare_rates(best[1], best[0], 0.9)
    env.add("publishing with a publisher key, limits on the key and the tenants, validation off",
            "≥ 0.9 × the admin key without limits", words, met, "the better of two rounds each")
    words, _ = compare_rates(best[2], best[1], 0.9)
    cost = best[2].cpu_each("node") - best[1].cpu_each("node")
    env.figures["full_api"] = {"plain_per_s": best[0].per_s, "full_per_s": best[1].per_s, "judged_per_s": best[2].per_s,
                               "judging_us": cost}
    env.add("the same with every event validated against a schema", "", words, None,
            f"{cost:+.1f} µs of the node's CPU time per event; validation alone: build/bench/bench/schema_cost")
