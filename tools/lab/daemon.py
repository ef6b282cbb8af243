# SPDX-License-Identifier: GPL-2.0
"""The lab's ornicd: one process, one vfio-user socket per device of each VM."""
import os
import re
import subprocess
import time

from . import state
from .debian import last_line
from .errors import LabError

START_PATIENCE = 20
SO_ACCEPTCON = 0x10000          # flag of a listening socket in /proc/net/unix


def socket_path(run, vm, device):
    return run.path("dev%d.%d.sock" % (vm, device))


def mac(vm, device):
    """Locally administered, and telling: device and VM are the last two bytes."""
    return "02:00:00:88:%02x:%02x" % (device, vm + 1)


def log_path(run):
    return run.path("ornicd.log")


def start(run, binary, vms, devices, extra):
    """Starts ornicd and waits until it listens on every socket; returns its identity."""
    if not os.access(binary, os.X_OK):
        raise LabError("no ornicd at %s: build it (make), name it with --ornicd, or use --device none" % binary)
    argv = [binary]
    sockets = []
    for vm in range(vms):
        for device in range(devices):
            sockets.append(socket_path(run, vm, device))
            argv += ["--device", "path=%s,mac=%s" % (sockets[-1], mac(vm, device))]
    argv += [x.replace("{run}", run.dir) for x in extra]
    with open(log_path(run), "wb") as log:
        try:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        except OSError as e:
            raise LabError("cannot run ornicd %s: %s: build it again (make)" % (binary, e.strerror)) from None
    who = state.identity(child.pid)
    end = time.monotonic() + START_PATIENCE
    while not listening(sockets):
        if child.poll() is not None:
            raise LabError("ornicd ended with status %d: %s" % (child.returncode, last_words(run)))
        if time.monotonic() > end:
            state.stop([who])
            raise LabError("ornicd does not listen on %s after %d s: %s" % (sockets[0], START_PATIENCE, last_words(run)))
        time.sleep(0.02)
    return who


def listening(paths):
    """Whether every path is a listening socket. Connecting would tell too, but the daemon would take it for a VM."""
    with open("/proc/net/unix") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    ready = {row[7] for row in rows if len(row) > 7 and int(row[3], 16) & SO_ACCEPTCON}
    return ready.issuperset(paths)


def error(run):
    """The last error or warning in ornicd's log, as something to put behind a sentence."""
    try:
        with open(log_path(run), errors="replace") as f:
            found = re.findall(r"^ornicd: (?:error|warning): .*", f.read(), re.M)
    except FileNotFoundError:
        return ""
    errors = [line for line in found if line.startswith("ornicd: error")]
    return "; " + (errors or found)[-1] if found else ""


def last_words(run):
    return last_line(log_path(run), 0) or "it said nothing"
