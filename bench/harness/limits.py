"""The limits of this machine, measured in the same run without project code."""

import os

from . import processes
from .env import ENDPOINTS_EACH, TENANTS

# On a quiet 2-core machine the raw loop reaches about 42,000 requests/s and the raw writes take about 30 µs. A run
# whose baselines are much slower than that says little about postrider.
RAW_REQUESTS_PER_S_MIN = 30_000
RAW_WRITE_US_MAX = 60

HOSTS = TENANTS * ENDPOINTS_EACH


def measure(env):
    """Fills env.figures["limits"]; notes when the machine is too slow or too busy for valid figures."""
    limits = env.figures["limits"] = cpu_limit(env) | idle_times(env)
    env.say(f"raw HTTP loop, {HOSTS} connections: {limits['raw_requests_per_s']:,.0f}/s, {limits['raw_http_us']:.1f} µs CPU "
            f"per request (64 connections: {limits['raw_requests_per_s_64']:,.0f}/s, {limits['raw_http_us_64']:.1f} µs)")
    env.say(f"raw writes: {limits['raw_writes_per_s']:,.0f}/s, {limits['raw_write_us']:.1f} µs CPU per delivery")
    env.say(f"one commit {limits['commit_p50_us']:.0f} µs, one raw POST {limits['post_p50_us']:.0f} µs "
            "(medians, idle)")
    env.say(f"CPU used up at {limits['deliveries_per_s']:,.0f} deliveries/s")
    if limits["raw_requests_per_s"] < RAW_REQUESTS_PER_S_MIN or limits["raw_write_us"] > RAW_WRITE_US_MAX:
        env.note("INVALID: the baselines are much slower than on a quiet machine (42,000 requests/s, 30 µs); "
                 "the machine is busy or slow, so the ratios prove nothing")


def cpu_limit(env):
    """What the raw loop and the raw writes cost in CPU time, and the rate at which both together use up the cores."""
    http = processes.run_tool(env.tools, "raw_http", "--target", env.receiver.address, "--connections", HOSTS,
                              "--hosts", HOSTS, "--seconds", env.sizes.raw_s)
    with env.database("migrated") as database:
        url = ["--database", env.cluster.url(database)]
        processes.run_tool(env.tools, "raw_pg", *url, "--seconds", 1)  # fills caches and makes WAL files
        writes = processes.run_tool(env.tools, "raw_pg", *url, "--seconds", env.sizes.raw_s)
    http_us = http["client_cpu_us"] + http["receiver_cpu_us"]
    write_us = writes["client_cpu_us"] + writes["server_cpu_us"]
    return {"raw_requests_per_s": http["requests_per_s"], "raw_http_us": http_us, "raw_write_us": write_us,
            "raw_writes_per_s": writes["deliveries_per_s"],
            "deliveries_per_s": os.cpu_count() * 1e6 / (http_us + write_us)}


def idle_times(env):
    """How long one request and one commit take when nothing else happens; and the raw loop over few connections."""
    target = ["--target", env.receiver.address]
    few = processes.run_tool(env.tools, "raw_http", *target, "--connections", 64, "--seconds", env.sizes.raw_s / 2)
    post = processes.run_tool(env.tools, "raw_http", *target, "--connections", 1, "--rate", 50,
                              "--seconds", env.sizes.raw_s)
    with env.database("migrated") as database:
        commit = processes.run_tool(env.tools, "raw_pg", "--database", env.cluster.url(database), "--rate", 50,
                                    "--seconds", env.sizes.raw_s)
    return {"raw_requests_per_s_64": few["requests_per_s"],
            "raw_http_us_64": few["client_cpu_us"] + few["receiver_cpu_us"],
            "commit_p50_us": commit["commit_latency"]["p50_ns"] / 1e3,
            "commit_p99_us": commit["commit_latency"]["p99_ns"] / 1e3,
            "post_p50_us": post["latency"]["p50_ns"] / 1e3, "post_p99_us": post["latency"]["p99_ns"] / 1e3}
