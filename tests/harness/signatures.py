"""Verifies what arrives the way a receiver does: by hand, and with the official library."""

import base64
import hashlib
import hmac
import json
import pathlib
import subprocess
import time

from .npm import npm_install

CONFORMANCE = pathlib.Path(__file__).resolve().parents[1] / "conformance"

OFFICIAL = """
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";
const { secret, body, headers } = JSON.parse(readFileSync(0, "utf8"));
new Webhook(secret).verify(Buffer.from(body, "base64").toString("utf8"), headers);
"""


def standard_signature(secret, request):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def assert_signed(secret, request):
    assert standard_signature(secret, request) in request.headers["webhook-signature"].split(" ")
    assert abs(time.time() - int(request.headers["webhook-timestamp"])) < 300


def assert_official_library_accepts(secret, request):
    """standardwebhooks from npm throws for anything it would not accept."""
    npm_install(CONFORMANCE)
    given = {"secret": secret, "body": base64.b64encode(request.body).decode(), "headers": request.headers}
    done = subprocess.run(["node", "--input-type=module", "-e", OFFICIAL], cwd=CONFORMANCE, input=json.dumps(given),
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
