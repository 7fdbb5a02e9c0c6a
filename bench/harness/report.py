"""The result as a printed table, as JSON, and as a page with plots."""

import datetime
import json
import math

from . import svg
from .env import FULL

REMARKS = "## Remarks\n"  # from here on the page is written by hand, and kept

VERDICT = {True: "met", False: "**missed**", None: "not evaluated"}


def print_table(env):
    width = max(len(row.figure) for row in env.rows)
    print()
    for row in env.rows:
        verdict = VERDICT[row.met].strip("*")
        print(f"{row.figure:<{width}}  {verdict:<12}  {row.measured}  (target {row.bar})")
    for note in env.notes:
        print(f"note: {note}")


def write_json(env, machine, path):
    rows = [vars(row) for row in env.rows]
    figures = {name: value for name, value in env.figures.items() if isinstance(value, dict)}
    path.write_text(json.dumps({"mode": env.sizes.name, "machine": machine, "rows": rows, "notes": env.notes,
                                "figures": figures}, indent=1, ensure_ascii=False), encoding="utf-8")


def plots(env):
    """File name → (caption, SVG) of what was measured."""
    p, out = env.plots, {}
    ms = lambda cdf: [(max(1e-3, ns / 1e6), fraction) for ns, fraction in cdf]
    if "throughput" in p:
        out["throughput.svg"] = ("Deliveries per second at the receiver, starting with an empty system", svg.chart(
            "Sustained deliveries", "seconds", "deliveries/s",
            [("published in batches of 100", p["throughput"]),
             ("published one by one", p.get("throughput_single", []))]))
    latencies = [("idle, from the publish request", ms(p.get("cdf_idle", []))),
                 ("healthy tenants", ms(p.get("cdf_quiet", []))),
                 ("healthy tenants next to a noisy one", ms(p.get("cdf_noisy", [])))]
    if any(points for _, points in latencies):
        out["latency.svg"] = ("Time from the publish request to the delivery at the receiver", svg.chart(
            "Latency", "milliseconds", "fraction of deliveries", latencies, x_log=True))
    if "pinned" in p:
        out["pinned_xmin.svg"] = ("Deliveries per second of two nodes side by side; one has its xmin horizon pinned",
                                  svg.chart("Pinned xmin horizon", "seconds", "deliveries/s",
                                            [("pinned", p["pinned"]), ("not pinned", p["pinned_free"])],
                                            marks=[(p["pinned_from"], "pinned from here")]))
    if "drain" in p:
        out["drain.svg"] = ("Deliveries per second while a backlog drains", svg.chart(
            "Draining a backlog", "seconds", "deliveries/s", [("deliveries/s", p["drain"])]))
    if "takeover" in p:
        points = thin(p["takeover"], 1500)
        start = points[0][0] if points else 0
        out["takeover.svg"] = ("Latency by time of publish; one of two nodes is killed", svg.chart(
            "Takeover after kill -9", "seconds since the first publish", "milliseconds",
            [("publish → receiver", [(x - start, y) for x, y in points])], marks=[(-start, "killed")], dots=True))
    return {name: entry for name, entry in out.items() if entry[1]}


def thin(points, count):
    step = max(1, math.ceil(len(points) / count))
    return points[::step]


def write_page(env, machine, page, commit):
    """`page` is the Markdown file; its plots go into a folder beside it, named like it."""
    folder = page.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    drawn = plots(env)
    for name, (_, text) in drawn.items():
        (folder / name).write_text(text, encoding="utf-8")
    text = page_text(env, machine, folder.name, drawn, commit)
    page.write_text(text + remarks_of(page), encoding="utf-8")


def remarks_of(page):
    """What a person added to the page that is about to be written anew."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    return "\n" + text[text.index(REMARKS):] if REMARKS in text else ""


def relay_table(rows):
    """How the relay may be woken, what that delays and what it costs."""
    if not rows:
        return []
    lines = ["", "## Outbox: delay and idle load", "",
             "One event at a time, measured from the commit to the delivery at the receiver. The load is that of an idle "
             "node.", "",
             "| relay | p50 | p99 | Postgres: transactions/s | Postgres: CPU per second |", "|---|---|---|---|---|"]
    for name, row in rows.items():
        delays = [f"{row[key]:.1f} ms" if key in row else "" for key in ("p50_ms", "p99_ms")]
        transactions = f"{row['transactions_per_s']:.0f}" if "transactions_per_s" in row else ""
        lines.append(f"| {name} | {delays[0]} | {delays[1]} | {transactions} | {row['cpu_ms_per_s']:.1f} ms |")
    return lines


def smaller_than_full(sizes):
    """The sizes that the targets require and this run did not have, in words."""
    named = {"pending": "{:,} pending instead of {:,}", "history": "{:,} attempts of history instead of {:,}",
             "list_attempts": "{:,} attempts in the lists instead of {:,}",
             "pinned_s": "xmin pinned for {:.0f} s instead of {:.0f}",
             "memory_endpoints": "{:,} endpoints in memory instead of {:,}",
             "lease_s": "a lease of {} s instead of {}", "sustained_s": "{:.0f} s of each load instead of {:.0f}"}
    return [words.format(getattr(sizes, name), getattr(FULL, name)) for name, words in named.items()
            if getattr(sizes, name) < getattr(FULL, name)]


def page_text(env, machine, folder, drawn, commit):
    limits, date = env.figures["limits"], datetime.date.today().isoformat()
    lines = [
        "# Benchmarks", "",
        "`./dev bench` (a few minutes) and `./dev bench full` produce this page. They compare postrider with the limits "
        "of the same machine. Programs without any postrider code measure these limits in the same run: a bare epoll "
        "HTTP loop against the same receiver, and the same rows written in pipelined batches. The receiver, the load "
        "generator, postrider and Postgres share the machine.", "",
        f"Measured {date} at {commit}, {env.sizes.name} mode: {machine}.", ""]
    smaller = smaller_than_full(env.sizes)
    if smaller:
        lines += [f"**Smaller than the targets require:** {', '.join(smaller)}.", ""]
    lines += ["## Limits of the machine", "", "| limit | measured |", "|---|---|",
              f"| raw HTTP loop, 1,000 keep-alive connections | {limits['raw_requests_per_s']:,.0f} requests/s, "
              f"{limits['raw_http_us']:.1f} µs CPU per request, client and receiver |",
              f"| the same, 64 connections | {limits['raw_requests_per_s_64']:,.0f} requests/s, "
              f"{limits['raw_http_us_64']:.1f} µs |",
              f"| raw writes, batches of 250 | {limits['raw_writes_per_s']:,.0f} deliveries/s over one connection, "
              f"{limits['raw_write_us']:.1f} µs CPU per delivery |",
              f"| one commit of one event, idle | {limits['commit_p50_us']:.0f} µs (p50) |",
              f"| one raw POST, idle | {limits['post_p50_us']:.0f} µs (p50) |",
              f"| CPU limit: one request and one write per delivery | {limits['deliveries_per_s']:,.0f} deliveries/s |", "",
              "## Results", "", "| figure | target | measured | |", "|---|---|---|---|"]
    for row in env.rows:
        detail = f"<br><small>{row.detail}</small>" if row.detail else ""
        lines.append(f"| {row.figure} | {row.bar} | {row.measured}{detail} | {VERDICT[row.met]} |")
    if env.notes:
        lines += ["", "Notes:", ""] + [f"- {note}" for note in env.notes]
    lines += relay_table(env.figures.get("relay_latency"))
    lines += ["", "## Plots", ""]
    for name, (caption, _) in drawn.items():
        lines += [f"{caption}:", "", f"![{caption}]({folder}/{name})", ""]
    return "\n".join(lines).rstrip() + "\n"
