# SPDX-License-Identifier: GPL-2.0
"""The host's side of the control channel: commands in a guest over its virtio-serial ports.

guest/agent.py describes the protocol. Each port carries one command at a time; a lock file per port lets several processes of
the host share a VM. A thread per command reads the guest's output, so a guest never waits for a slow reader.
"""
import fcntl
import json
import os
import re
import secrets
import shlex
import socket
import struct
import threading
import time

from .errors import LabError

PORTS = 8                       # concurrent commands per guest
FRAME = struct.Struct(">cI")
CHUNK = 1 << 18
BUSY_PATIENCE = 60              # seconds to wait for a free port
ANSWER_PATIENCE = 30            # seconds for the agent's echo

# Settings of stdbuf(1): programs that write to a pipe show each line at once.
LINE_BUFFERED = {"LD_PRELOAD": "/usr/libexec/coreutils/libstdbuf.so", "_STDBUF_O": "L", "PYTHONUNBUFFERED": "1"}


class Gone(LabError):
    """The guest's end of the channel closed or never answered."""


class Line:
    """An open control port; closing it kills the command that runs on it."""

    def __init__(self, vm, patience=ANSWER_PATIENCE):
        self.vm = vm
        end = time.monotonic() + max(BUSY_PATIENCE, patience)
        while not self._claim():
            if not vm.alive():
                raise Gone(vm.obituary())
            if time.monotonic() > end:
                raise Gone("%s: all %d control ports are busy" % (vm.name, PORTS))
            time.sleep(0.05)
        try:
            self.rest = self._synchronise(patience)
        except BaseException:
            self.close()
            raise

    def _claim(self):
        for number in range(PORTS):
            lock = open(self.vm.path("vm%d.%d.lock" % (self.vm.number, number)), "w")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.socket = socket.socket(socket.AF_UNIX)
                self.socket.connect(self.vm.path("vm%d.%d.sock" % (self.vm.number, number)))
            except OSError:
                lock.close()
                continue
            self.lock = lock
            return True
        return False

    def _synchronise(self, patience):
        """Wait for the agent's echo of a nonce; discard earlier data, which belongs to a previous conversation."""
        mark = b"SYNC " + secrets.token_hex(8).encode() + b"\n"
        seen = b""
        end = time.monotonic() + patience
        self.socket.settimeout(0.5)
        try:
            self.socket.sendall(b"\n" + mark)
            while mark not in seen:
                seen = seen[-len(mark):] + self._some()
                if not self.vm.alive():
                    raise ConnectionResetError
                if time.monotonic() > end:
                    raise Gone("%s does not answer (its console: lab console %d)" % (self.vm.name, self.vm.number))
        except OSError:
            raise Gone(self.vm.obituary()) from None
        self.socket.settimeout(None)
        return seen.split(mark, 1)[1]

    def _some(self):
        try:
            data = self.socket.recv(CHUNK)
        except TimeoutError:
            return b""
        if not data:
            raise ConnectionResetError
        return data

    def close(self):
        self.socket.close()
        self.lock.close()


class Process:
    """A command in a guest. Output is kept in out and err, and passed to sink(kind, data) when it arrives."""

    def __init__(self, vm, cmd, timeout=None, tty=None, lines=False, sink=None, patience=ANSWER_PATIENCE):
        self.vm = vm
        self.cmd = cmd if isinstance(cmd, str) else shlex.join(cmd)
        self.out = bytearray()
        self.err = bytearray()
        self.status = None
        self.fault = None
        self.sink = sink
        self.timeout = timeout and timeout * vm.patience
        self.news = threading.Condition()
        self.sending = threading.Lock()
        self.line = Line(vm, patience)
        request = {"cmd": cmd, "timeout": self.timeout or 0, "env": LINE_BUFFERED if lines else {}}
        if tty:
            request["tty"] = list(tty)
            request["env"] = {"TERM": os.environ.get("TERM", "dumb")}
        try:
            self.line.socket.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            self.line.close()
            raise Gone(vm.obituary()) from None
        self.thread = threading.Thread(target=self._receive, daemon=True)
        self.thread.start()

    def _receive(self):
        buf = self.line.rest
        try:
            while True:
                while len(buf) >= FRAME.size and len(buf) >= FRAME.size + FRAME.unpack_from(buf)[1]:
                    kind, size = FRAME.unpack_from(buf)
                    data = buf[FRAME.size:FRAME.size + size]
                    buf = buf[FRAME.size + size:]
                    if kind == b"x":
                        return self._finish(status=int(data))
                    self._take(kind, data)
                data = self.line.socket.recv(CHUNK)
                if not data:
                    return self._finish(fault=self.vm.obituary())
                buf += data
        except ConnectionResetError:    # QEMU was killed before it had read all data
            self._finish(fault=self.vm.obituary())
        except OSError as e:
            self._finish(fault="%s: control channel: %s" % (self.vm.name, e.strerror or e))

    def _take(self, kind, data):
        if self.sink:
            self.sink(kind, data)
        with self.news:
            (self.out if kind == b"o" else self.err).extend(data)
            self.news.notify_all()

    def _finish(self, status=None, fault=None):
        with self.news:
            self.status = status
            self.fault = fault
            self.line.close()
            self.news.notify_all()

    def _ended(self):
        return self.status is not None or self.fault is not None

    def _send(self, kind, data):
        with self.sending:
            try:
                self.line.socket.sendall(FRAME.pack(kind, len(data)) + data)
            except OSError:
                if not self._ended():
                    raise Gone(self.vm.obituary()) from None

    def write(self, data):
        """Give the command standard input."""
        for at in range(0, len(data), CHUNK):
            self._send(b"i", data[at:at + CHUNK])

    def end_input(self):
        self._send(b"i", b"")

    def signal(self, number):
        """Send a signal to the command and its children."""
        self._send(b"s", b"%d" % number)

    def resize(self, rows, columns):
        self._send(b"w", struct.pack(">HH", rows, columns))

    def poll(self):
        """Return the exit status, or None while it runs."""
        if self.fault:
            raise Gone(self.fault)
        return self.status

    def wait(self, timeout=None):
        """Return the exit status when it has ended; raise LabError if that takes longer than timeout seconds or the VM dies."""
        timeout = timeout and timeout * self.vm.patience
        with self.news:
            if not self.news.wait_for(self._ended, timeout):
                raise LabError("%s: '%s' still runs after %g s" % (self.vm.name, brief(self.cmd), timeout))
        return self.poll()

    def wait_for(self, pattern, timeout=60):
        """Return the match object of the first match of pattern in the output so far or to come."""
        timeout *= self.vm.patience
        found = None

        def look():
            nonlocal found
            found = re.search(pattern, self.text())
            return found or self._ended()
        with self.news:
            self.news.wait_for(look, timeout)
        if not found:
            raise LabError("%s: '%s' %s without saying /%s/; it said: %s" % (
                self.vm.name, brief(self.cmd), "ended" if self._ended() else "went on for %g s" % timeout, pattern,
                self.text()[-300:].strip() or "nothing"))
        return found

    def text(self):
        """Return output, then errors, as text."""
        return (self.out + self.err).decode(errors="replace")

    def kill(self):
        """Kill the command and wait for its end."""
        if not self._ended():
            self.signal(9)
            self.wait(ANSWER_PATIENCE)


def brief(cmd):
    return cmd if len(cmd) <= 60 else cmd[:57] + "..."
