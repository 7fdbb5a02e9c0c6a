"""A Debian 12 with systemd that boots in qemu, runs a script and powers off."""

import pathlib
import shutil
import subprocess

from chroots import run

UNIT = """[Unit]
Description=the test
After=multi-user.target postgresql.service nginx.service
[Service]
Type=oneshot
ExecStart=/bin/bash -c '/bin/bash -eux /srv/test.sh >/srv/test.log 2>&1; echo $? >/srv/result; sync'
ExecStopPost=/sbin/poweroff -f
StandardOutput=journal+console
TimeoutStartSec=900
[Install]
WantedBy=multi-user.target
"""
PACKAGES = ("systemd-sysv", "udev", "dbus", "linux-image-cloud-amd64", "postgresql-15", "nginx-light", "ca-certificates", "curl", "jq",
            "openssl", "python3-minimal", "iproute2")
BOOT_SECONDS = 900
# Without what a host that is virtual itself does not let its guests set.
CPU = "host,-arch-capabilities"


def prepare(system, script, archives):
    """Makes a chroot bootable; `archives`: .deb files whose dependencies the machine can install without a network."""
    paths = [system.add(path) for path in archives]
    system.run("apt-get", "-qq", "install", "-y", "--no-install-recommends", "--download-only", *paths)
    (system.root / "usr/sbin/policy-rc.d").unlink()
    (system.root / "srv/test.sh").write_text(script)
    (system.root / "etc/systemd/system/test.service").write_text(UNIT)
    (system.root / "etc/fstab").write_text("/dev/vda / ext4 defaults 0 1\n")
    (system.root / "etc/hostname").write_text("machine\n")
    system.run("systemctl", "enable", "test.service")


def boot(system, folder):
    """Returns what the script printed; fails if it failed or the machine did not end."""
    image = pathlib.Path(folder) / "disk.img"
    [kernel] = (system.root / "boot").glob("vmlinuz-*")
    [initrd] = (system.root / "boot").glob("initrd.img-*")
    for path in (kernel, initrd):
        shutil.copy(path, folder)
    # mke2fs would also copy what is mounted there.
    run("umount", system.root / "dev")
    run("umount", system.root / "proc")
    try:
        run("mke2fs", "-q", "-t", "ext4", "-d", system.root, image, "4G")
    finally:
        run("mount", "-t", "proc", "proc", system.root / "proc")
        run("mount", "--bind", "/dev", system.root / "dev")
    console = pathlib.Path(folder) / "console.log"
    command = ["qemu-system-x86_64", "-enable-kvm", "-cpu", CPU, "-m", "1500", "-smp", "2", "-nographic", "-no-reboot",
               "-kernel", folder / kernel.name, "-initrd", folder / initrd.name,
               "-append", "root=/dev/vda rw console=ttyS0 panic=-1", "-nic", "none",
               "-drive", f"file={image},if=virtio,format=raw,cache=unsafe", "-serial", f"file:{console}", "-monitor", "none"]
    subprocess.run([str(word) for word in command], timeout=BOOT_SECONDS, stdin=subprocess.DEVNULL, check=True)
    read = lambda path: run("debugfs", "-R", f"cat {path}", image)
    log = read("/srv/test.log")
    assert read("/srv/result").strip().endswith("0"), f"{log[-6000:]}\n── console\n{console.read_text(errors='replace')[-2000:]}"
    return log
