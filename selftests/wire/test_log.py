#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The log of a running daemon: nothing waits for its reader, no source floods it, and what its forms look like. The service manager,
which learns that the daemon serves, stops and lives, is a socket of the test."""
import contextlib
import fcntl
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import control  # noqa: E402  pylint: disable=wrong-import-position
import tap  # noqa: E402  pylint: disable=wrong-import-position
from program import BUILD  # noqa: E402  pylint: disable=wrong-import-position

GUEST = os.path.join(BUILD, "selftests", "roce_guest")
FAST = os.path.join(BUILD, "ornicd")        # without sanitizers
VERSION = struct.pack("=HHIIIHH", 1, 1, 20, 0, 0, 0, 1)     # vfio-user 0.1, without capabilities
BAD_HEADER = struct.pack("=HHIII", 1, 1, 3, 0, 0)           # a message shorter than its header
BURST = 12          # LOG_BURST of log.h
CHILDREN = 8        # LOG_PARENT
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"


class Daemon(control.Daemon):
    """A daemon whose standard error, program and environment the test chooses."""

    def __init__(self, case, *options, stderr=None, program=control.ORNICD, env=None, **more):
        self.stderr = stderr
        self.program = program
        self.env = {**os.environ, **(env or {})}
        super().__init__(case, *options, **more)

    def start(self):
        ready, tell = os.pipe()
        self.argv[0] = self.program
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*self.argv, "--ready-fd", str(tell)], pass_fds=[tell], env=self.env,
                                            stderr=log if self.stderr is None else self.stderr)
        os.close(tell)
        with os.fdopen(ready, "rb") as f:
            self.case.assertTrue(select.select([f], [], [], control.PATIENCE)[0], "the daemon hangs at its start")
            self.case.assertEqual(f.read(1), b"\n", self.said())


def connect(path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(control.PATIENCE)
    sock.connect(path)
    return sock


def visit(path, message=b""):
    """Connect, send a message, and wait until the daemon has closed the connection, which it does after a bad message."""
    with connect(path) as sock:
        with contextlib.suppress(BrokenPipeError):     # closed at once, because another client is connected
            sock.sendall(message)
        if message == VERSION:
            sock.recv(4096)
            sock.shutdown(socket.SHUT_WR)
        while sock.recv(4096):
            pass


def full_sum(lines, source):
    """Return the number of suppressed lines of a source that the log reports."""
    reports = (re.fullmatch(r"ornicd: (?:\w+: )?%s: (\d+) lines suppressed" % re.escape(source), line) for line in lines)
    return sum(int(m.group(1)) for m in reports if m)


class Reader:
    """A pipe of one page for standard error. start() begins to read it; lines() waits for its end."""

    def __init__(self, case):
        reader, self.end = os.pipe()
        fcntl.fcntl(self.end, fcntl.F_SETPIPE_SZ, 4096)
        self.file = os.fdopen(reader, "rb")
        self.case = case
        self.data = b""
        self.thread = threading.Thread(target=self.run, daemon=True)
        case.addCleanup(self.close)

    def close(self):
        self.give()
        if not self.thread.ident:
            self.file.close()

    def give(self):
        """Close our writing end: the daemon has inherited it."""
        if self.end >= 0:
            os.close(self.end)
        self.end = -1

    def run(self):
        with self.file:
            self.data = self.file.read()

    def start(self):
        self.thread.start()

    def lines(self):
        self.thread.join(control.PATIENCE)
        self.case.assertFalse(self.thread.is_alive(), "the pipe does not end")
        return self.data.decode().splitlines()


class Unread(unittest.TestCase):
    """A log that nobody reads, or that cannot be written."""

    def daemon(self, *options, **more):
        """Return a daemon that logs into a pipe, and the pipe's reader, which does not read yet."""
        reader = Reader(self)
        daemon = Daemon(self, *options, stderr=reader.end, **more)
        reader.give()
        return daemon, reader

    def guests(self, daemon):
        """Return a function that lets two guests, of devices a and b, exchange data."""
        guest = subprocess.Popen([GUEST, daemon.path("a.sock"), daemon.path("b.sock")], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

        def end():
            guest.stdin.close()
            self.assertEqual(guest.wait(control.PATIENCE), 0)
            guest.stdout.close()

        self.addCleanup(end)
        guest.stdout.readline()

        def exchange():
            guest.stdin.write("innocent\n")
            guest.stdin.flush()
            self.assertTrue(select.select([guest.stdout], [], [], control.PATIENCE)[0], "the data path hangs")
            self.assertEqual(guest.stdout.readline(), "innocent ok\n")
        return exchange

    def test_pipe(self):
        """It stops neither the data path, nor clients, nor commands. A reader that comes later learns what is missing."""
        daemon, reader = self.daemon("--log-level", "debug", devices="abcdef")
        exchange, client = self.guests(daemon), daemon.client()
        for turn in range(800):
            for name in "cdef":
                visit(daemon.path(name + ".sock"), VERSION)
            if turn % 50 == 0:
                exchange()
                with self.assertRaises(control.Refused):
                    client.call("port.del", name="nothing")
        reader.start()
        time.sleep(1.5)             # the sources may write again
        visit(daemon.path("c.sock"), BAD_HEADER)
        exchange()
        client.call("version")
        daemon.stop()
        lines = reader.lines()
        lost = [n for n, line in enumerate(lines) if re.fullmatch(r"ornicd: warning: \d+ lines lost, because nobody read the log", line)]
        self.assertEqual(len(lost), 1, lines[-20:])
        self.assertGreater(lost[0], 500)
        self.assertIn("ornicd: error: c: client sent a message of 3 bytes, allowed are 16 to 65568", lines[lost[0]:])
        self.assertIn("ornicd: stopping", lines[lost[0]:])
        self.assertEqual([line for line in lines if not line.startswith("ornicd: ")], [])

    def test_commands_do_not_wait(self):
        """Of the commands with lines of the log, one may wait for a reader of the log that does not come; the others do not."""
        daemon, reader = self.daemon()
        slow = 0
        for number in range(200):
            client = daemon.client()            # each client may write lines
            began = time.monotonic()
            with self.assertRaises(control.Refused):
                client.call("port.del", name="nothing%d" % number)
            slow += time.monotonic() - began > 0.9
            client.close()
        self.assertLessEqual(slow, 2)
        reader.start()
        daemon.stop()
        lines = reader.lines()
        self.assertIn("ornicd: error: there is no port nothing0", lines)
        self.assertIn("ornicd: stopping", lines)

    def test_end(self):
        """The daemon ends although nobody reads its log, with its exit status."""
        daemon, _ = self.daemon("--log-level", "debug")
        for _ in range(200):
            visit(daemon.path("a.sock"), VERSION)
        began = time.monotonic()
        daemon.stop()
        self.assertLess(time.monotonic() - began, 20)
        reader = Reader(self)
        with contextlib.suppress(BlockingIOError):
            os.set_blocking(reader.end, False)
            while True:
                os.write(reader.end, b"x" * 4096)
        os.set_blocking(reader.end, True)
        done = subprocess.run([control.ORNICD, "--nonsense"], stderr=reader.end, timeout=control.PATIENCE)
        self.assertEqual(done.returncode, 2)

    def test_reader_dies(self):
        daemon, reader = self.daemon()
        reader.file.close()
        exchange = self.guests(daemon)
        exchange()
        for number in range(20):
            with self.assertRaises(control.Refused):
                daemon.client().call("port.del", name="nothing%d" % number)
        exchange()
        daemon.stop()

    def test_disk_full(self):
        with open("/dev/full", "wb", 0) as full:
            daemon = Daemon(self, stderr=full)
        exchange = self.guests(daemon)
        for number in range(20):
            with self.assertRaises(control.Refused):
                daemon.client().call("port.del", name="nothing%d" % number)
        exchange()
        daemon.stop()


class Floods(unittest.TestCase):
    """What a guest, a client, a peer or an operator does repeatedly costs few lines, and suppresses no line of others."""

    def few(self, daemon, action, number, source, per_action, burst=BURST):
        """
        Do something many times, and check that the log has few lines of a source, and that it counts the others: there are
        per_action of them each time.
        """
        skip = len(daemon.said())
        began = time.monotonic()
        for _ in range(number):
            action()
        allowed = burst + 3 * (time.monotonic() - began + 3)
        deadline = time.monotonic() + 10
        while True:
            lines = daemon.said()[skip:].splitlines()
            count = full_sum(lines, source)
            own = [line for line in lines if "lines suppressed" not in line]
            if len(own) + count >= per_action * number or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        self.assertLess(len(lines), allowed, lines[-10:])
        self.assertGreaterEqual(len(own) + count, per_action * number, lines[-10:])
        self.assertGreater(count, 0)
        return lines

    def test_bad_headers(self):
        """100,000 connections with a bad header. The other device has its line."""
        daemon = Daemon(self, program=FAST)

        def attack():
            visit(daemon.path("a.sock"), BAD_HEADER)
            if daemon.process.poll() is not None:
                self.fail(daemon.said())

        lines = self.few(daemon, attack, 100000, "a", 3)
        self.assertIn("ornicd: error: a: client sent a message of 3 bytes, allowed are 16 to 65568", lines)
        visit(daemon.path("b.sock"), BAD_HEADER)
        deadline = time.monotonic() + control.PATIENCE
        while "ornicd: b: client disconnected\n" not in daemon.said():
            self.assertLess(time.monotonic(), deadline, daemon.said())
            time.sleep(0.01)
        self.assertIn("ornicd: error: b: client sent a message of 3 bytes", daemon.said())

    def test_clients(self):
        daemon = Daemon(self)
        self.few(daemon, lambda: visit(daemon.path("a.sock"), VERSION), 300, "a", 2)
        with connect(daemon.path("b.sock")):
            self.few(daemon, lambda: visit(daemon.path("b.sock")), 300, "b", 1)

    def test_peers(self):
        daemon = Daemon(self)
        client = daemon.client()
        client.call("port.add", spec="stream,path=%s,name=lan" % daemon.path("lan"))
        client.call("port.add", spec="stream,path=%s,name=wan" % daemon.path("wan"))

        def peer():
            sock = connect(daemon.path("lan"))
            sock.sendall(bytes(4))          # an illegal length
            self.assertEqual(sock.recv(1), b"")
            sock.close()

        self.few(daemon, peer, 300, "lan", 2)
        with connect(daemon.path("wan")):
            self.few(daemon, lambda: visit(daemon.path("wan")), 300, "wan", 1)

    def test_commands(self):
        """The lines that one client of the control socket causes; it gets each error as the answer."""
        daemon = Daemon(self)
        client, serial = daemon.client(), iter(range(10**6))

        def wrong():
            with self.assertRaisesRegex(control.Refused, "there is no port x"):
                client.call("port.del", name="x")

        def port():
            client.call("port.add", spec="dgram,local=%s,remote=%s,name=p" % (daemon.path("l"), daemon.path("r")))
            client.call("port.del", name="p")

        def capture():
            path = daemon.path("capture%d" % next(serial))
            client.call("capture.stop", id=client.call("capture.start", spec=path)["id"])
            while client.call("capture.list"):
                pass

        self.few(daemon, wrong, 300, "control", 1)
        # another client is not affected
        with self.assertRaises(control.Refused):
            daemon.client().call("port.del", name="other")
        self.assertIn("ornicd: error: there is no port other\n", daemon.said())
        time.sleep(1)
        self.few(daemon, port, 200, "control", 2)
        time.sleep(1)
        self.few(daemon, capture, 100, "control", 1, burst=BURST + CHILDREN * BURST)      # and the ends of the captures

    def test_many_operators(self):
        """Clients that come for one command each."""
        daemon = Daemon(self)

        def wrong():
            client = control.Client(daemon.control)
            for _ in range(3):
                with self.assertRaises(control.Refused):
                    client.call("port.del", name="x")
            client.close()

        skip = len(daemon.said())
        for _ in range(300):
            wrong()
        lines = daemon.said()[skip:].splitlines()
        self.assertLess(len(lines), CHILDREN * BURST + 60)

    def test_time_of_report(self):
        """The number of suppressed lines comes within a second or two, although nothing happens meanwhile."""
        daemon = Daemon(self)
        for _ in range(30):
            visit(daemon.path("a.sock"), BAD_HEADER)
        time.sleep(2)
        self.assertGreater(full_sum(daemon.said().splitlines(), "a"), 0)

    def test_report_at_the_end(self):
        """The end of a source reports what it did not."""
        daemon = Daemon(self)
        client = daemon.client()
        client.call("port.add", spec="stream,path=%s,name=lan" % daemon.path("lan"))
        for _ in range(30):
            visit(daemon.path("lan"), bytes(4))
            visit(daemon.path("a.sock"), BAD_HEADER)
        client.call("port.del", name="lan")
        self.assertGreater(full_sum(daemon.said().splitlines(), "lan"), 0)
        daemon.stop()
        self.assertGreater(full_sum(daemon.said().splitlines(), "a"), 0)


class Form(unittest.TestCase):
    def parse(self, text):
        """Check that each line is a JSON object with all members. Return them."""
        lines = [json.loads(line) for line in text.splitlines()]
        for line in lines:
            self.assertEqual(set(line), {"time", "level", "source", "message"})
            self.assertRegex(line["time"], r"\A" + TIME + r"\Z")
            self.assertIn(line["level"], ("error", "warning", "info", "debug"))
        return lines

    def test_json(self):
        daemon = Daemon(self, "--log-format", "json", "--log-level", "debug", "--device", "path=%s,name=gr\u00fc\"\\n" %
                        os.path.join(tempfile.gettempdir(), "ornic-%d.sock" % os.getpid()))
        client = daemon.client()
        for name in ('a"b', "\n\u001b[1m\u007f", "\u20ac\U0001f600", "x" * 600):
            with self.assertRaises(control.Refused):
                client.call("port.del", name=name)
        visit(daemon.path("a.sock"), BAD_HEADER)
        visit(daemon.path("a.sock"), VERSION)
        daemon.stop()
        lines = self.parse(daemon.said())
        messages = [(line["level"], line["source"], line["message"]) for line in lines]
        self.assertIn(("error", "a", "client sent a message of 3 bytes, allowed are 16 to 65568"), messages)
        self.assertIn(("error", "ornicd", 'there is no port a"b'), messages)
        self.assertIn(("error", "ornicd", "there is no port ??[1m?"), messages)
        self.assertIn(("error", "ornicd", "there is no port \u20ac\U0001f600"), messages)
        self.assertIn("debug", [line["level"] for line in lines])
        self.assertIn('gr\u00fc"\\n', [line["source"] for line in lines])
        times = [line["time"] for line in lines]
        self.assertEqual(times, sorted(times))

    def test_json_of_an_error_of_the_options(self):
        """Errors of the configuration have the form that it has set before."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            f.write('{ "log_format": "json", "log_level": "nonsense" }')
            f.flush()
            for options in (["--log-format", "json", "--nonsense"], ["-c", f.name]):
                done = subprocess.run([control.ORNICD, *options], stderr=subprocess.PIPE, timeout=control.PATIENCE)
                self.assertEqual(done.returncode, 2)
                line, = self.parse(done.stderr.decode())
                self.assertIn("nonsense", line["message"])

    def test_time(self):
        daemon = Daemon(self, "--log-time", "on")
        daemon.stop()
        for line in daemon.said().splitlines():
            self.assertRegex(line, r"\A" + TIME + r" ornicd: \S")

    def test_journal(self):
        """Lines have priorities if the journal reads them."""
        for right in (True, False):
            reader = Reader(self)
            stat = os.fstat(reader.end)
            daemon = Daemon(self, stderr=reader.end, env={"JOURNAL_STREAM": "%d:%d" % (stat.st_dev, stat.st_ino + (not right))})
            reader.give()
            reader.start()
            visit(daemon.path("a.sock"), BAD_HEADER)
            daemon.stop()
            lines = reader.lines()
            if right:
                self.assertIn("<3>error: a: client sent a message of 3 bytes, allowed are 16 to 65568", lines)
                self.assertIn("<6>stopping", lines)
            else:
                self.assertIn("ornicd: stopping", lines)


class Manager(unittest.TestCase):
    """The service manager, as sd_notify(3) and sd_watchdog_enabled(3) describe it."""

    def socket(self, name):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.bind(name)
        sock.settimeout(control.PATIENCE)
        self.addCleanup(sock.close)
        return sock

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ornic-notify-")
        self.addCleanup(shutil.rmtree, self.dir)

    def test_ready_and_stopping(self):
        path = os.path.join(self.dir, "notify")
        for name, text in ((path, path), ("\0ornic-notify-%d" % os.getpid(), "@ornic-notify-%d" % os.getpid())):
            sock = self.socket(name)
            daemon = Daemon(self, env={"NOTIFY_SOCKET": text})
            self.assertEqual(sock.recv(1000), b"READY=1\nSTATUS=Serving 2 devices")
            daemon.client().call("version")         # the sockets listen
            daemon.client().call("device.add", spec="path=" + daemon.path("x"))
            self.assertEqual(sock.recv(1000), b"STATUS=Serving 3 devices")
            daemon.client().call("device.del", name="x")
            self.assertEqual(sock.recv(1000), b"STATUS=Serving 2 devices")
            daemon.stop()
            self.assertEqual(sock.recv(1000), b"STOPPING=1\nSTATUS=Stopping")
            sock.setblocking(False)
            with self.assertRaises(BlockingIOError):
                sock.recv(1000)
            self.assertNotIn("service manager", daemon.said())

    def test_no_ready_after_a_failure(self):
        sock = self.socket(os.path.join(self.dir, "notify"))
        done = subprocess.run([control.ORNICD, "-d", "path=/nonexistent/a"], env={**os.environ, "NOTIFY_SOCKET": sock.getsockname()},
                              stderr=subprocess.DEVNULL, timeout=control.PATIENCE)
        self.assertEqual(done.returncode, 1)
        sock.setblocking(False)
        with self.assertRaises(BlockingIOError):
            sock.recv(1000)

    def signs(self, daemon_env, seconds):
        """Return the number of signs of life in that time, while the daemon is idle."""
        sock = self.socket(os.path.join(self.dir, "notify"))
        daemon = Daemon(self, env={"NOTIFY_SOCKET": sock.getsockname(), **daemon_env})
        self.assertTrue(sock.recv(1000).startswith(b"READY=1\n"))
        end, count = time.monotonic() + seconds, 0
        while select.select([sock], [], [], max(0, end - time.monotonic()))[0]:
            self.assertEqual(sock.recv(1000), b"WATCHDOG=1")
            count += 1
        daemon.stop()
        sock.close()
        os.unlink(os.path.join(self.dir, "notify"))
        return count

    def test_watchdog(self):
        """Two signs of life in each period; the daemon is idle and looks at its sockets every 500 ms otherwise."""
        self.assertIn(self.signs({"WATCHDOG_USEC": "200000"}, 2), range(12, 22))
        self.assertIn(self.signs({"WATCHDOG_USEC": "200000", "WATCHDOG_PID": str(os.getpid())}, 1), (0,))
        for usec in ("0", "-1", "x", "1x", "", "99999999999999999999999"):
            self.assertEqual(self.signs({"WATCHDOG_USEC": usec}, 0.2), 0, usec)
        self.assertEqual(self.signs({}, 0.2), 0)

    def test_watchdog_of_a_stopped_daemon(self):
        """A daemon that is stopped gives no sign, and one at once when it continues."""
        sock = self.socket(os.path.join(self.dir, "notify"))
        daemon = Daemon(self, env={"NOTIFY_SOCKET": sock.getsockname(), "WATCHDOG_USEC": "400000"})
        sock.recv(1000)
        daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        while select.select([sock], [], [], 0)[0]:
            sock.recv(1000)
        self.assertFalse(select.select([sock], [], [], 1)[0])
        daemon.process.send_signal(signal.SIGCONT)
        self.assertEqual(sock.recv(1000), b"WATCHDOG=1")

    def test_no_manager(self):
        """A manager that is not there, does not read, or goes away costs a line, and the daemon serves."""
        path = os.path.join(self.dir, "notify")
        for name in (path, "nonsense", "@", "vsock:2:1", "/" + "x" * 200):
            daemon = Daemon(self, env={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "100000"})
            daemon.client().call("version")
            daemon.stop()
            self.assertIn("ornicd: warning: service manager: cannot connect to %s: " % name, daemon.said())
        sock = self.socket(path)
        daemon = Daemon(self, env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "20000"})
        time.sleep(0.5)             # its queue is full
        daemon.client().call("version")
        sock.close()
        time.sleep(0.5)
        daemon.client().call("version")
        daemon.stop()
        self.assertIn("ornicd: warning: service manager: cannot send WATCHDOG=1: ", daemon.said())
        self.assertLess(daemon.said().count("cannot send"), BURST + 5)


if __name__ == "__main__":
    tap.main()
