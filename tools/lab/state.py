# SPDX-License-Identifier: GPL-2.0
"""Files of a running lab: a run directory with sockets, logs and state.json.

A process is remembered by pid and start time, so that a reused number is never mistaken for it. A lab that a test program
started belongs to that program: when the owner is gone the lab is a leftover, and the next `up` or `status` clears it.
"""
import contextlib
import fcntl
import json
import os
import shutil
import signal
import threading
import time

from .errors import LabError

SOCKET_PATH_MAX = 107
REMOVE_PATIENCE = 5


def base():
    default = "/run/ornic-lab" if os.geteuid() == 0 else "/tmp/ornic-lab-%d" % os.getuid()
    return os.environ.get("ORNIC_LAB_RUN", default)


def default_name():
    return os.environ.get("ORNIC_LAB", "default")


def start_time(pid):
    """Return the kernel's start time of a process, None when it is gone (a zombie is, once its other threads are)."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" and int(fields[17]) <= 1 else int(fields[19])


def identity(pid):
    return [pid, start_time(pid)]


def alive(who):
    """Return true if the process recorded as [pid, start time] still runs."""
    if not who or who[1] is None:
        return False
    if start_time(who[0]) == who[1]:
        return True
    reap(who)
    return False


def stop(processes, grace=5.0):
    """End processes: send SIGTERM, after grace seconds SIGKILL; return when they are gone."""
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 10.0)):
        for who in processes:
            if alive(who):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(who[0], number)
        end = time.monotonic() + patience
        while any(alive(who) for who in processes) and time.monotonic() < end:
            time.sleep(0.02)


def reap(who):
    """Collect an ended process if it is a child of ours: VMs are children only of the process that started them."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(who[0], os.WNOHANG)


class State:
    """The run directory of one lab and its state.json."""

    def __init__(self, name):
        self.name = name
        self.dir = os.path.join(base(), name)
        if len(self.path("vm00.00.sock")) > SOCKET_PATH_MAX:
            raise LabError("the path %s is too long for sockets: choose a shorter name or ORNIC_LAB_RUN" % self.dir)
        self.data = {}

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def load(self):
        """Load the state; return true if the lab exists."""
        try:
            with open(self.path("state.json")) as f:
                self.data = json.load(f)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except ValueError:
            self.data = {}
        return True

    def save(self):
        new = self.path("state.json.new")
        with open(new, "w") as f:
            json.dump(self.data, f, indent=1)
        os.rename(new, self.path("state.json"))

    def create(self):
        """Make the run directory; one without a state remains from an earlier attempt on a full disk."""
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.dir, mode=0o755)

    def processes(self):
        return [vm["process"] for vm in self.data.get("vms", [])] + self.data.get("daemons", [])

    def is_leftover(self):
        """Return true if its owner is gone or, with no owner, none of its processes runs any more."""
        owner = self.data.get("owner")
        return not alive(owner) if owner else not any(alive(p) for p in self.processes())

    def remove(self):
        """Remove the directory; threads that wait for a VM may create files until it is gone."""
        stop([p for p in self.processes() if p])
        end = time.monotonic() + REMOVE_PATIENCE
        while os.path.isdir(self.dir) and time.monotonic() < end:
            shutil.rmtree(self.dir, ignore_errors=True)

    def keep_logs(self, name):
        """Keep the logs of a lab that failed to start, until the next one of that name fails; return their place, or None."""
        kept = os.path.join(base() + "-failed", name)
        shutil.rmtree(kept, ignore_errors=True)
        try:
            logs = [e.path for e in os.scandir(self.dir) if e.name.endswith((".log", ".console")) and e.stat().st_size]
            if not logs:
                return None
            os.makedirs(kept)
            for path in logs:
                shutil.copy(path, kept)
        except OSError:
            return None
        return kept


@contextlib.contextmanager
def uninterrupted():
    """Delay signals that end the program until the end of the block: a process that starts must be recorded, or it would never
    be stopped."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = []
    usual = {number: signal.signal(number, lambda *what: came.append(what)) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler or signal.SIG_DFL)
        for number, _ in came:
            signal.raise_signal(number)


@contextlib.contextmanager
def locked():
    """Hold the lock that permits one `up` or `down` at a time."""
    try:
        os.makedirs(base(), exist_ok=True)
        lock = open(os.path.join(base(), ".lock"), "w")
    except OSError as e:
        raise LabError("cannot write the run directory %s (%s): set ORNIC_LAB_RUN to a folder that can be made"
                       % (base(), e.strerror)) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def all_labs():
    """Return the states of all existing labs of this user."""
    names = sorted(os.listdir(base())) if os.path.isdir(base()) else []
    states = [State(n) for n in names if os.path.isdir(os.path.join(base(), n))]
    for state in states:
        state.load()
    return states


def sweep():
    """Remove labs whose owner died or whose processes are all gone; return their names."""
    gone = [s for s in all_labs() if s.is_leftover()]
    for state in gone:
        state.remove()
    return [s.name for s in gone]
