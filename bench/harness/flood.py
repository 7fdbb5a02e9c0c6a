#!/usr/bin/python3
"""Calls of one tenant's key without any pause: dry-run replays, exports, streams, statistics and lists.

  flood.py --target 127.0.0.1:8090 --key KEY --tenant greedy [--seconds 10 | --answers N] [--connections 60]

Ends after that time, or when each kind of call got N responses and one succeeded, and prints the statuses it got, by
kind, as JSON. With --seconds it runs only when nothing else wants the processor (SCHED_IDLE): a flood from elsewhere would not
take processor time from the node either. A lower nice value is not enough, since a woken process waits for the running one's
slice of 3 ms anyway."""

import argparse
import asyncio
import collections
import datetime
import json
import os

READ_BYTES = 1 << 16


def calls(tenant):
    """Kind → method, target, body. As many connections do each."""
    since = (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    of_tenant = f"/v1/tenants/{tenant}"
    return {
        "dry run": ("POST", f"{of_tenant}/replays", {"only": "all", "since": since, "dry_run": True}),
        "export": ("GET", f"{of_tenant}/events?format=ndjson", None),
        "stream": ("GET", f"{of_tenant}/stream?after=@{since}", None),
        "statistics": ("GET", f"{of_tenant}/stats?by=type&since={since}&limit=250", None),
        "list": ("GET", f"{of_tenant}/deliveries?type=flood.never", None),
    }


def request_bytes(options, method, target, body):
    text = "" if body is None else json.dumps(body)
    head = [f"{method} {target} HTTP/1.1", f"host: {options.target}", f"authorization: Bearer {options.key}",
            "connection: close"]
    if body is not None:
        head += ["content-type: application/json", f"content-length: {len(text)}"]
    return ("\r\n".join(head) + "\r\n\r\n" + text).encode()


async def call_once(options, request, statuses):
    host, port = options.target.split(":")
    writer = None
    try:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request)
        status = (await reader.readline()).split()
        statuses[status[1].decode() if len(status) > 1 else "none"] += 1
        while await reader.read(READ_BYTES):
            pass
    except OSError:
        statuses["none"] += 1
    finally:
        if writer:
            writer.close()


async def repeat(options, request, statuses):
    while True:
        await call_once(options, request, statuses)


async def flood(options):
    kinds = calls(options.tenant)
    statuses = {kind: collections.Counter() for kind in kinds}
    tasks = []
    for kind, (method, target, body) in kinds.items():
        request = request_bytes(options, method, target, body)
        tasks += [asyncio.create_task(repeat(options, request, statuses[kind]))
                  for _ in range(options.connections // len(kinds))]
    if options.answers:
        while (any(counts.total() < options.answers for counts in statuses.values())
               or not any(counts["200"] for counts in statuses.values())):
            await asyncio.sleep(0.01)
    else:
        await asyncio.sleep(options.seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return statuses


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--target", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--tenant", required=True)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--answers", type=int, default=0)
    parser.add_argument("--connections", type=int, default=60)
    options = parser.parse_args()
    if not options.answers:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    print(json.dumps(asyncio.run(flood(options))))


if __name__ == "__main__":
    main()
