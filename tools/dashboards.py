#!/usr/bin/python3
"""Writes the Grafana dashboards in deploy/grafana from the lists of panels below. Without --fix it fails if one is out of
date.

usage: dashboards.py [--fix]
"""

import json
import sys

import tree

FOLDER = tree.ROOT / "deploy" / "grafana"
WIDTH, HEIGHT = 12, 8  # two panels in a row
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def quantile(share, metric, by="", window="5m"):
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket[{window}])))"


def rate(metric, by="", where="", window="5m"):
    group = f" by ({by})" if by else ""
    selector = f"{{{where}}}" if where else ""
    return f"sum{group} (rate({metric}{selector}[{window}]))"


# Title, unit, and (query, legend) pairs.
DASHBOARDS = {
    "overview": ("postrider: overview", [
        ("Events published", "ops", [(rate("webhook_events_created_total"), "events")]),
        ("Delivery attempts by outcome", "ops",
         [(rate("webhook_deliveries_attempted_total", "outcome"), "{{outcome}}")]),
        ("Success rate of attempts", "percentunit",
         [(rate("webhook_deliveries_attempted_total", where='outcome="delivered"') + " / "
           + rate("webhook_deliveries_attempted_total"), "delivered")]),
        ("Delivery lag: event created to delivered", "s",
         [(quantile(share, "webhook_delivery_lag_seconds"), f"p{round(share * 100)}") for share in (0.5, 0.95, 0.99)]),
        ("Duration of attempts", "s",
         [(quantile(share, "webhook_delivery_duration_seconds"), f"p{round(share * 100)}") for share in (0.5, 0.99)]),
        ("Failed attempts by reason", "ops", [(rate("webhook_deliveries_failed_total", "reason"), "{{reason}}")]),
        ("Dead letters by cause", "ops", [(rate("webhook_dead_lettered_total", "cause"), "{{cause}}")]),
        ("Oldest delivery that is due", "s", [("max(webhook_oldest_pending_seconds)", "oldest")]),
        ("Queue", "short", [("max(webhook_queue_rows)", "queue of all nodes"),
                            ("sum(webhook_queue_depth) by (state)", "{{state}}")]),
        ("Attempts in flight", "short", [("sum(webhook_in_flight)", "in flight")]),
        ("API requests by status", "ops", [(rate("webhook_api_requests_total", "status_class"), "{{status_class}}")]),
        ("Nodes and leases", "short", [("webhook_leases_held", "{{instance}}")]),
    ]),
    "tenants": ("postrider: endpoints and tenants", [
        ("Endpoints by status", "short", [("max by (status) (webhook_endpoints)", "{{status}}")]),
        ("Endpoints with work in memory", "short", [("sum(webhook_lanes)", "endpoints")]),
        ("Endpoints whose deliveries are held", "short", [("sum(webhook_lanes_held)", "held")]),
        ("Attempts until a delivery ended", "short",
         [(quantile(share, "webhook_delivery_attempt_count"), f"p{round(share * 100)}") for share in (0.5, 0.99)]),
        ("Blocked destinations by reason", "ops", [(rate("webhook_blocked_destinations_total", "reason"), "{{reason}}")]),
        ("Replays requested", "ops", [(rate("webhook_replay_requests_total"), "replays")]),
        ("Notices to contacts", "ops", [(rate("webhook_notices_total", "outcome"), "{{outcome}}")]),
        ("Confirmation mails", "ops", [(rate("webhook_confirmation_mails_total", "outcome"), "{{outcome}}")]),
    ]),
    "database": ("postrider: database", [
        ("Round trips of delivery", "ops", [(rate("webhook_database_round_trips_total"), "round trips")]),
        ("Deliveries per round trip", "short",
         [(rate("webhook_deliveries_attempted_total") + " / " + rate("webhook_database_round_trips_total"), "deliveries")]),
        ("Items per batch (p50)", "short", [(quantile(0.5, "webhook_batch_items", "batch"), "{{batch}}")]),
        ("Items per batch (p99)", "short", [(quantile(0.99, "webhook_batch_items", "batch"), "{{batch}}")]),
        ("Results dropped because the bucket had a new owner", "ops",
         [(rate("webhook_late_settles_dropped_total"), "dropped")]),
        ("Rows kept longer than their day", "ops", [(rate("webhook_retention_kept_rows_total"), "rows")]),
        ("Deliveries that retention will cancel", "short",
         [("max(webhook_retention_expiring_deliveries)", "deliveries")]),
        ("Free space (node_exporter)", "percentunit",
         [('node_filesystem_avail_bytes{fstype!~"tmpfs|overlay|squashfs"} '
           '/ node_filesystem_size_bytes{fstype!~"tmpfs|overlay|squashfs"}', "{{instance}} {{mountpoint}}")]),
    ]),
    "outbox-inbox": ("postrider: outbox and inbox", [
        ("Rows relayed", "ops", [(rate("webhook_relay_rows_total", "outbox, result"), "{{outbox}}: {{result}}")]),
        ("Relay lag: row written to event published", "s",
         [(quantile(share, "webhook_relay_lag_seconds", "outbox"), "{{outbox}} p" + str(round(share * 100)))
          for share in (0.5, 0.99)]),
        ("Oldest row that waits", "s", [("max by (outbox) (webhook_outbox_oldest_seconds)", "{{outbox}}")]),
        ("Rows set aside", "short", [("max by (outbox) (webhook_outbox_stuck)", "{{outbox}}")]),
        ("Relays", "short", [("sum by (outbox) (webhook_relay_active)", "{{outbox}}")]),
        ("Log kept for a replication slot", "bytes",
         [("max by (outbox) (webhook_capture_retained_bytes)", "{{outbox}}")]),
        ("Inbound messages", "ops", [(rate("webhook_inbox_received_total", "outcome"), "{{outcome}}")]),
        ("Inbound requests rejected", "ops", [(rate("webhook_inbox_rejected_total", "reason"), "{{reason}}")]),
        ("Inbox lag", "s", [("max by (work) (webhook_inbox_lag_seconds)", "{{work}}")]),
        ("Inbox depth", "short", [("max(webhook_inbox_depth)", "messages")]),
    ]),
}


def panel(number, title, unit, queries):
    return {
        "id": number + 1, "type": "timeseries", "title": title, "datasource": SOURCE,
        "gridPos": {"x": WIDTH * (number % 2), "y": HEIGHT * (number // 2), "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0, "custom": {"fillOpacity": 10, "showPoints": "never"}},
                        "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": [{"refId": chr(ord("A") + n), "datasource": SOURCE, "expr": query, "legendFormat": legend}
                    for n, (query, legend) in enumerate(queries)],
    }


def dashboard(name, title, panels):
    return {
        "uid": f"postrider-{name}", "title": title, "tags": ["postrider"], "schemaVersion": 37, "version": 1,
        "editable": True, "refresh": "30s", "timezone": "browser", "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source",
                                 "current": {}, "hide": 0, "refresh": 1}]},
        "annotations": {"list": []}, "links": [{"title": "postrider", "type": "dashboards", "tags": ["postrider"],
                                                "asDropdown": True, "includeVars": True, "keepTime": True}],
        "panels": [panel(number, *each) for number, each in enumerate(panels)],
    }


def main():
    is_fixed = "--fix" in sys.argv[1:]
    stale = []
    for name, (title, panels) in DASHBOARDS.items():
        text = json.dumps(dashboard(name, title, panels), indent=1) + "\n"
        path = FOLDER / f"{name}.json"
        if not path.is_file() or path.read_text() != text:
            stale.append(name)
            if is_fixed:
                path.write_text(text)
    if stale and not is_fixed:
        print(f"deploy/grafana is out of date ({', '.join(stale)}); ./dev check --fix writes it")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
