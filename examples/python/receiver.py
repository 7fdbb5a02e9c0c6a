#!/usr/bin/python3
"""Receives webhooks, verifies their signatures with the Standard Webhooks library, and prints each event once.

usage: WEBHOOK_SECRET=whsec_… LISTEN=127.0.0.1:8000 receiver.py
"""

import http.server
import os

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

MAX_BODY_BYTES = 1 << 20
WEBHOOK = Webhook(os.environ["WEBHOOK_SECRET"])
SEEN = set()  # a table with a unique key in a real service


def process(event_id, event):
    """An event can arrive more than once, always with the same ID."""
    if event_id not in SEEN:
        SEEN.add(event_id)
        print(event_id, event["type"], flush=True)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.send_response(self.receive())
        self.send_header("content-length", "0")
        self.end_headers()

    def receive(self):
        length = int(self.headers.get("content-length", 0))
        if length > MAX_BODY_BYTES:
            self.close_connection = True
            return 413
        body = self.rfile.read(length)
        try:
            event = WEBHOOK.verify(body, dict(self.headers))
        except (WebhookVerificationError, ValueError):  # ValueError: a signature that is not base64
            return 401
        process(self.headers["webhook-id"], event)
        return 204

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    host, port = os.environ["LISTEN"].split(":")
    http.server.ThreadingHTTPServer((host, int(port)), Handler).serve_forever()
