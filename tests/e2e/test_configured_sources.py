"""Inbound sources that stand in the configuration file: made at every start, changed only there."""

import base64
import hashlib
import hmac
import json
import subprocess
import time

from harness import node as node_module
from harness.wait import wait_until


FULL_SOURCE = f"""
[[source]]
id = "shop"
provider = "hmac"
secrets = ["first-secret-of-the-shop", "env:HOOK_SECRET_SHOP"]
description = "Our shop"
tolerance_seconds = 60
idempotency_key = "x-order"
deduplicate = "content"
partition_key = "/customer"
ordering = "strict"
headers = ["X-Topic"]
body_bytes_max = 2048
consume = true
forward = {{ tenant_id = "acme", type = "shop.{{type}}" }}
max_attempts = 3
[source.signature]
header = "X-Sign"
prefix = "v1="
template = "{{timestamp}}.{{body}}"
hash = "sha512"
encoding = "base64"
key = "raw"
timestamp_header = "X-Time"
"""


def configured(tmp_path, text):
    path = tmp_path / "postrider.toml"
    path.write_text(text)
    return "--config", str(path)


def send_to_shop(node, secret, order):
    body = json.dumps({"type": "paid", "customer": "c1", "order": order}).encode()
    at = str(int(time.time()))
    digest = hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha512).digest()
    headers = {"content-type": "application/json", "x-sign": "v1=" + base64.b64encode(digest).decode(), "x-time": at,
               "x-order": order, "x-topic": "orders"}
    return node.api.as_key(None).call("POST", "/in/shop", body, headers=headers).status


def run_config(words, **settings):
    return subprocess.run([node_module.binary(), "config", *words], cwd="/", text=True, capture_output=True,
                          env=node_module.environment(**settings))


def test_sources_of_the_configuration_file_are_made_at_every_start_and_only_changed_there(
        start_node, database_url, tmp_path, monkeypatch):
    words = configured(tmp_path, FULL_SOURCE)
    environment = node_module.environment
    monkeypatch.setattr(node_module, "environment",
                        lambda **settings: {**environment(**settings), "HOOK_SECRET_SHOP": "second-secret-of-the-shop"})
    settings = {"database_url": database_url, "secret_environment_prefix": "HOOK_SECRET_"}
    node = start_node(words=("serve", *words), **settings)
    # Its tenant does not exist yet: senders get an error, operators the reason, and it is created as soon as possible.
    assert "does not exist yet" in node.wait_for_log("source_not_applied", source="shop")["error"]
    assert send_to_shop(node, "first-secret-of-the-shop", "o-0") == 404
    node.api.create_tenant("acme")
    wait_until(lambda: node.api.get("/v1/sources/shop").status == 200, "the source is made")
    shown = node.api.get("/v1/sources/shop").json
    expected = {"provider": "hmac", "description": "Our shop", "tolerance_seconds": 60, "idempotency_key": "x-order",
                "deduplicate": "content", "partition_key": "/customer", "ordering": "strict", "headers": ["x-topic"], "body_bytes_max": 2048,
                "consume": True, "forward": {"tenant_id": "acme", "type": "shop.{type}"}, "max_attempts": 3,
                "configured_by": "file",
                "signature": {"header": "x-sign", "prefix": "v1=", "template": "{timestamp}.{body}", "hash": "sha512",
                              "encoding": "base64", "key": "raw", "timestamp_header": "x-time"}}
    assert {name: shown[name] for name in expected} == expected
    for order, secret in (("o-1", "first-secret-of-the-shop"), ("o-2", "second-secret-of-the-shop")):
        wait_until(lambda: send_to_shop(node, secret, order) == 200, "the source is taken at the door")
    assert node.sql("select count(*) from postrider.inbox where source_id = 'shop'") == [(2,)]

    path = "/v1/sources/shop"
    secret_id = node.api.get(f"{path}/secrets").json["data"][0]["id"]
    for method, where, body in (("PATCH", path, {"max_attempts": 5}), ("DELETE", path, None),
                                ("POST", "/v1/sources", {"id": "shop", "provider": "github"}),
                                ("POST", f"{path}/secrets", {}), ("POST", f"{path}/secrets/rotate", {}),
                                ("DELETE", f"{path}/secrets/{secret_id}", None)):
        refused = node.api.call(method, where, body)
        assert refused.status == 409 and refused.json["type"].endswith("configured-by-file"), (method, where)

    audited = node.sql("select count(*) from postrider.audit where object = 'shop'")
    node.stop()
    node = start_node(words=("serve", *words), **settings)
    assert node.sql("select count(*) from postrider.audit where object = 'shop'") == audited, "nothing had changed"
    secrets = [secret["id"] for secret in node.api.get(f"{path}/secrets").json["data"]]
    node.stop()

    # The file is what counts: another setting, one secret less and one more.
    configured(tmp_path, FULL_SOURCE.replace("max_attempts = 3", "max_attempts = 4")
               .replace('"env:HOOK_SECRET_SHOP"', '"third-secret-of-the-shop"'))
    node = start_node(words=("serve", *words), **settings)
    assert node.api.get(path).json["max_attempts"] == 4
    kept = {secret["id"] for secret in node.api.get(f"{path}/secrets").json["data"]} & set(secrets)
    assert len(kept) == 1
    assert [send_to_shop(node, f"{which}-secret-of-the-shop", which) for which in ("first", "second", "third")] == \
        [200, 401, 200]
    log = json.dumps(node.log) + "".join(node.text)
    config = run_config(words, **settings)
    assert "source.shop" in config.stdout, config.stderr
    assert "secret-of-the-shop" not in config.stdout + config.stderr + log
    node.stop()

    # Out of the file it is a source like any other.
    node = start_node(database_url=database_url)
    assert node.api.get(path).json["configured_by"] == "api"
    node.api.call("PATCH", path, {"max_attempts": 9}).expect(200)
    node.stop()

    configured(tmp_path, '[[source]]\nid = "shop"\nprovider = "github"\nsecret = "a-secret-of-github"\n')
    node = start_node(words=("serve", *words), database_url=database_url)
    assert "exists with the provider hmac" in node.wait_for_log("source_not_applied", source="shop")["error"]
    assert node.api.get(path).json["max_attempts"] == 9
    assert [entry["actor"]["id"] for entry in node.api.get("/v1/audit?object=shop&limit=250").json["data"]
            if entry["action"] == "source.create"] == ["configuration file"]


def test_a_source_of_the_file_that_is_wrong_stops_the_start_with_its_line_and_without_its_secret(tmp_path):
    good = '[[source]]\nid = "a"\nprovider = "hmac"\nsecret = "sesame-sesame-sesame"\n'
    cases = [
        (good.replace('"hmac"', '"hmca"'), "provider (file {}:3) must be one of"),
        (good.replace('"a"', '"a b"'), "id (file {}:2) must consist of"),
        (good + "tolerance_seconds = 0\n", "tolerance_seconds (file {}:5) must be"),
        (good + "body_bytes_max = 99999999\n", "body_bytes_max (file {}:5) must be"),
        (good + 'idempotency_key = "a b"\n', "idempotency_key (file {}:5) must be the name of a header"),
        (good + 'partition_key = "a b"\n', "partition_key (file {}:5) must be the name of a header"),
        (good + 'ordering = "strict"\n', "ordering (file {}:5) strict needs a partition_key"),
        (good + 'headers = ["x-a", "x b"]\n', "headers.1 (file {}:5) must be the name of a header"),
        (good + "consume = false\n", "consume (file {}:5) must be true unless"),
        (good + "consume = 1\n", "consume (file {}:5) must be"),
        (good + 'forward = { tenant_id = "t" }\n', "forward.type (file {}:5) is required"),
        (good + 'forward = { tenant_id = "t", type = "{" }\n', "forward.type (file {}:5)"),
        (good + "max_attempts = 0\n", "max_attempts (file {}:5) must be"),
        (good + '[source.signature]\nhash = "md5"\n', "signature.hash (file {}:6) must be one of"),
        (good + '[source.signature]\ntemplate = "{what}"\n', "signature.template (file {}:6)"),
        (good + "bodybytes = 1\n", "bodybytes (file {}:5)"),
        (good.replace("sesame-sesame-sesame", "sesame"), "secret (file {}:4) must have"),
        (good.replace('secret = "sesame-sesame-sesame"', 'secrets = ["a-secret-of-mine", "a-secret-of-mine"]'),
         "secrets.1 (file {}:4) is listed twice"),
        (good.replace('secret = "sesame-sesame-sesame"', f"secrets = {[f'secret-number-{n}' for n in range(6)]}"),
         "secrets (file {}:4) must not be more than 5"),
    ]
    for text, sentence in cases:
        words = configured(tmp_path, text)
        done = run_config(words)
        assert sentence.format(words[1]) in done.stderr, (sentence, done.stderr)
        assert done.returncode != 0 and "sesame" not in done.stderr
    for reference, why in (("env:NOT_OURS", "does not read secrets from its environment"), ("file:/etc/hosts", "from files"),
                           ("exec:/bin/true", "does not run programs")):
        words = configured(tmp_path, good.replace("sesame-sesame-sesame", reference))
        done = subprocess.run([node_module.binary(), "serve", *words], cwd="/", text=True, capture_output=True,
                              env=node_module.environment(data_dir=str(tmp_path / "data")), timeout=60)
        assert done.returncode != 0 and "secret (file" in done.stdout + done.stderr and why in done.stdout + done.stderr
