"""docs/deploying.md, word for word, on a booted Debian 12 with systemd, Postgres and nginx, without a network."""

import pathlib
import tempfile

from chroots import chroot, find
from harness.documents import blocks_of
from machine import PACKAGES, boot, prepare

PAGE = "docs/deploying.md"

PROXY = r"""
# The nginx example, with a certificate of our own.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=hooks.example.com \
  -addext subjectAltName=DNS:hooks.example.com,DNS:receiver.example.com \
  -out /usr/local/share/ca-certificates/hooks.crt -keyout /etc/ssl/private/hooks.example.com.key
update-ca-certificates
cp /usr/local/share/ca-certificates/hooks.crt /etc/ssl/certs/hooks.example.com.pem
cp /usr/share/doc/postrider/examples/nginx/postrider.conf /etc/nginx/conf.d/
echo 127.0.0.1 hooks.example.com receiver.example.com >>/etc/hosts
# A receiver over TLS, on another port of the same nginx.
cat >/etc/nginx/conf.d/receiver.conf <<'CONF'
server {
    listen 8443 ssl;
    server_name receiver.example.com;
    ssl_certificate /etc/ssl/certs/hooks.example.com.pem;
    ssl_certificate_key /etc/ssl/private/hooks.example.com.key;
    access_log /var/log/nginx/received.log;
    location / { return 204; }
}
CONF
rm -f /etc/nginx/sites-enabled/default
nginx -t
systemctl restart nginx

cat >>/etc/postrider/postrider.toml <<'TOML'
public_url = "https://hooks.example.com"
trusted_proxies = ["127.0.0.1/32"]
allow_networks = ["127.0.0.0/8"]
TOML
systemctl restart postrider
systemctl show postrider -p Type -p ActiveState -p SubState -p StatusText -p WatchdogUSec -p NRestarts

export POSTRIDER_SERVER=https://hooks.example.com
postrider endpoint create acme --id hooks --url https://receiver.example.com:8443/in --event-type '*'
postrider event publish acme invoice.paid '{"n": 1}' --id first
for _ in $(seq 300); do grep -q 'POST /in' /var/log/nginx/received.log && break; sleep 0.1; done
grep 'POST /in' /var/log/nginx/received.log
[ "$(curl -s -o /dev/null -w '%{http_code}' https://hooks.example.com/healthz)" = 200 ]

# The watchdog restarts a process that does not respond.
mkdir -p /etc/systemd/system/postrider.service.d
printf '[Service]\nWatchdogSec=3\n' >/etc/systemd/system/postrider.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart postrider
kill -STOP "$(systemctl show postrider -p MainPID --value)"
for _ in $(seq 600); do [ "$(systemctl show postrider -p NRestarts --value)" = 1 ] && break; sleep 0.1; done
[ "$(systemctl show postrider -p NRestarts --value)" = 1 ]
for _ in $(seq 600); do systemctl is-active --quiet postrider && break; sleep 0.1; done
systemctl is-active postrider
rm -r /etc/systemd/system/postrider.service.d

# Upgrade, stop, remove and purge with a real init.
systemctl daemon-reload
apt-get install -y /srv/new/postrider_*.deb
systemctl is-active postrider
postrider event publish acme invoice.paid '{"n": 2}' --id second
systemctl stop postrider
systemctl show postrider -p Result -p ExecMainStatus
[ "$(systemctl show postrider -p Result --value)" = success ]
apt-get purge -y postrider
[ "$(ls /etc/postrider)" = master.key ]
"""


def test_the_guide_works_on_a_booted_debian(packages):
    guide = [block.text for block in blocks_of(PAGE) if block.run_by == "tests/packages/test_machine.py"]
    assert len(guide) == 3
    script = "cd /srv\nuntil systemctl is-active --quiet postgresql@15-main; do sleep 0.1; done\n" + "\n".join(guide) + PROXY
    with chroot("bookworm", PACKAGES) as system, tempfile.TemporaryDirectory(prefix="pr-machine-", dir="/tmp") as folder:
        (system.root / "srv/new").mkdir()
        system.add(find(packages["0.1.1"], "postrider_*.deb"), "/srv/new")
        prepare(system, script, [find(packages["0.1.0"], "postrider_*.deb")])
        log = boot(system, pathlib.Path(folder))
    assert "Type=notify" in log and "StatusText=Listening on 127.0.0.1:8090" in log, log[-4000:]
