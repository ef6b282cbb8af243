# SPDX-License-Identifier: GPL-2.0
"""The lab's ornicds: one for all VMs or one for each (hosts.py), with a vfio-user socket per device of each VM."""
import contextlib
import os
import re
import subprocess
import time

from . import hosts, state
from .debian import last_line
from .errors import LabError

START_PATIENCE = 20
SO_ACCEPTCON = 0x10000          # flag of a listening socket in /proc/PID/net/unix
# A daemon in a separate namespace starts when the namespace is set up: at the end of its input.
APART = ["unshare", "--net", "sh", "-c", 'read -r line; exec "$@" < /dev/null', "sh"]


def socket_path(run, vm, device):
    return run.path("dev%d.%d.sock" % (vm, device))


def mac(vm, device):
    """Return a locally administered address whose last two bytes are device and VM."""
    return "02:00:00:88:%02x:%02x" % (device, vm + 1)


class Daemon:
    """One ornicd of a lab, also before it runs."""

    def __init__(self, run, number, host, devices):
        self.number = number
        self.host = host
        self.log = log_path(run, number)
        self.devices = [(vm, k) for vm in host.vms for k in range(devices[vm])]
        self.sockets = [socket_path(run, vm, k) for vm, k in self.devices]
        self.run = run
        self.child = None

    def start(self, binary, extra, keys):
        argv = [binary]
        for (vm, device), path in zip(self.devices, self.sockets):
            more = keys.replace("{n}", str(vm + 1)).replace("{k}", str(device))
            argv += ["--device", ",".join(["path=" + path, "mac=" + mac(vm, device)] + [more] * bool(more))]
        for port in self.host.ports:
            argv += ["--port", port]
        argv += [x.replace("{i}", str(self.number)).replace("{run}", self.run.dir) for x in extra]
        with open(self.log, "wb") as log:
            try:
                self.child = subprocess.Popen((APART if self.host.apart else []) + argv, stdin=subprocess.PIPE, stdout=log,
                                              stderr=log, start_new_session=True)
            except OSError as e:
                raise LabError("cannot run ornicd %s: %s: build it again (make)" % (binary, e.strerror)) from None

    def wait(self):
        """Wait until it listens on every socket."""
        self.child.stdin.close()
        end = time.monotonic() + START_PATIENCE
        while not listening(self.child.pid, self.sockets):
            if self.child.poll() is not None:
                raise LabError("ornicd ended with status %d: %s" % (self.child.returncode, last_words(self.log)))
            if time.monotonic() > end:
                raise LabError("ornicd does not listen on %s after %d s: %s" % (self.sockets[0], START_PATIENCE,
                                                                              last_words(self.log)))
            time.sleep(0.02)


def log_path(run, number=0):
    return run.path("ornicd%d.log" % number if number else "ornicd.log")


def log_paths(run):
    """Return the logs of all daemons, the first one's first."""
    return [log_path(run, number) for number in range(len(run.data.get("daemons", [])))]


def start(run, binary, plan, devices, extra, keys):
    """Start the daemon of each host of the plan for each VM's number of devices; record them in the lab's state."""
    if not os.access(binary, os.X_OK):
        raise LabError("no ornicd at %s: build it (make), name it with --ornicd, or use --device none" % binary)
    daemons = [Daemon(run, number, host, devices) for number, host in enumerate(plan)]
    run.data["daemons"] = []
    for one in daemons:
        with state.uninterrupted():
            one.start(binary, extra, keys)
            run.data["daemons"].append(state.identity(one.child.pid))
        run.save()
    if plan[0].apart:
        wait_apart(daemons)
        hosts.cable([one.child.pid for one in daemons])
    for one in daemons:
        one.wait()


def wait_apart(daemons):
    """Wait until each has left our network namespace."""
    here = os.readlink("/proc/self/ns/net")
    end = time.monotonic() + START_PATIENCE
    for one in daemons:
        while one.child.poll() is None and os.readlink("/proc/%d/ns/net" % one.child.pid) == here:
            if time.monotonic() > end:
                raise LabError("no network namespace for ornicd after %d s: %s" % (START_PATIENCE, last_words(one.log)))
            time.sleep(0.02)
        if one.child.poll() is not None:
            raise LabError("no network namespace for ornicd: %s" % last_words(one.log))


def listening(pid, paths):
    """Return true if every path is a listening socket. A connection would show that too, but the daemon would take it for a VM."""
    try:
        with open("/proc/%d/net/unix" % pid) as f:
            rows = [line.split() for line in f.readlines()[1:]]
    except OSError:             # it has ended
        return False
    ready = {row[7] for row in rows if len(row) > 7 and int(row[3], 16) & SO_ACCEPTCON}
    return ready.issuperset(paths)


def error(run):
    """Return the last error or warning in the daemons' logs, to be appended to a sentence."""
    found = []
    for path in log_paths(run):
        with contextlib.suppress(FileNotFoundError), open(path, errors="replace") as f:
            found += re.findall(r"^ornicd: (?:error|warning): .*", f.read(), re.M)
    errors = [line for line in found if line.startswith("ornicd: error")]
    return "; " + (errors or found)[-1] if found else ""


def last_words(log):
    return last_line(log, 0) or "it said nothing"
