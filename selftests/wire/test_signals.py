#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Signals of a real daemon: which end it, in order, and which do not. test_device.c sends the latter between messages."""
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import control  # noqa: E402
import tap      # noqa: E402

ENDS = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGXCPU}
OF_WRITE = {signal.SIGPIPE, signal.SIGXFSZ}
OF_ERRORS = {signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS}
OF_STOPS = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
BY_DEFAULT_IGNORED = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH}
IGNORED = signal.valid_signals() - ENDS - OF_WRITE - OF_ERRORS - OF_STOPS - BY_DEFAULT_IGNORED - {signal.SIGKILL}


class Signals(unittest.TestCase):
    def sockets(self, daemon):
        return {name for name in os.listdir(daemon.dir) if name != "log"}

    def alive(self, daemon):
        """Check that the daemon serves; when it answers, it has received the signals that were sent before."""
        self.assertIsNone(daemon.process.poll(), daemon.said())
        client = control.Client(daemon.control)
        self.assertEqual(client.call("version")["pid"], daemon.process.pid)
        client.close()

    def test_sighup(self):
        """One line says what to do; a flood is summed up in a few."""
        daemon = control.Daemon(self)
        daemon.process.send_signal(signal.SIGHUP)
        self.alive(daemon)
        lines = [line for line in daemon.said().splitlines() if "SIGHUP" in line]
        self.assertEqual(lines, ["ornicd: warning: signals: ignored SIGHUP from process %d: ornicd cannot reload; to restart it, stop its virtual "
                                 "machines, send SIGTERM and start it again" % os.getpid()])
        start = time.monotonic()
        for _ in range(100):
            daemon.process.send_signal(signal.SIGHUP)
            self.alive(daemon)
        seconds = time.monotonic() - start + 2
        self.assertLessEqual(daemon.said().count("SIGHUP"), 5 * seconds)

    def test_others_are_ignored(self):
        """None of the signals that no one should send ends the daemon or its devices."""
        daemon = control.Daemon(self)
        self.assertGreater(len(IGNORED), 35)
        for number in sorted(IGNORED | OF_WRITE | BY_DEFAULT_IGNORED):
            with self.subTest(number=number):
                daemon.process.send_signal(number)
                self.alive(daemon)
        self.assertIn("ignored signal %d (User defined signal 1) from process %d; SIGTERM ends ornicd" %
                      (signal.SIGUSR1, os.getpid()), daemon.said())
        self.assertEqual(self.sockets(daemon), {"a.sock", "b.sock", "control"})

    def test_ends(self):
        """The end is in order, also if the signal comes again and again: no socket stays, and clients read an end of file."""
        for number in sorted(ENDS):
            with self.subTest(number=number):
                daemon = control.Daemon(self)
                client = daemon.client()
                guest = socket.socket(socket.AF_UNIX)
                self.addCleanup(guest.close)
                guest.settimeout(control.PATIENCE)
                guest.connect(daemon.path("a.sock"))
                while daemon.process.poll() is None:
                    daemon.process.send_signal(number)
                self.assertEqual(daemon.process.returncode, 0, daemon.said())
                daemon.process = None
                self.assertEqual(self.sockets(daemon), set())
                self.assertEqual(guest.recv(1), b"")
                self.assertEqual(client.file.readline(), b"")

    def test_end_with_another(self):
        """A signal without effect does not disturb the end."""
        daemon = control.Daemon(self)
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
            daemon.process.send_signal(number)
        self.assertEqual(daemon.process.wait(control.PATIENCE), 0)
        daemon.process = None
        self.assertEqual(self.sockets(daemon), set())

    def test_terminal_hangs_up(self):
        """The daemon survives the end of the terminal that started it, which is a SIGHUP of the kernel."""
        daemon = control.Daemon(self)
        daemon.stop()
        pid, terminal = os.forkpty()
        if not pid:
            try:
                os.execv(daemon.argv[0], daemon.argv)
            finally:
                os._exit(127)
        said = b""
        while b"control: listening" not in said:
            said += os.read(terminal, 4096)
        os.close(terminal)
        self.assertEqual(daemon.client().call("version")["pid"], pid)
        time.sleep(0.2)
        self.assertEqual(daemon.client().call("version")["pid"], pid)
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(self.sockets(daemon), set())

    def test_log_without_reader(self):
        """A log that cannot be written, pipe or file, does not end the daemon."""
        daemon = control.Daemon(self)
        daemon.stop()
        daemon.process = subprocess.Popen(daemon.argv, stderr=subprocess.PIPE)
        while b"control: listening" not in daemon.process.stderr.readline():
            pass
        daemon.process.stderr.close()
        client = daemon.client()
        for _ in range(3):
            daemon.process.send_signal(signal.SIGUSR1)
            client.call("version")
        daemon.stop()
        daemon.start()
        size = os.stat(daemon.log).st_size
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (size, size))
        for _ in range(3):
            daemon.process.send_signal(signal.SIGUSR1)
            self.alive(daemon)
        self.assertEqual(os.stat(daemon.log).st_size, size)

    def test_manual(self):
        """The manual has a paragraph for each group, with the same signals."""
        with open(os.path.join(control.TOP, "Documentation", "man", "ornicd.8"), encoding="utf-8") as f:
            manual = f.read()
        section = re.search(r"(?ms)^\.SH SIGNALS$(.*?)^\.SH", manual).group(1)
        groups = [set(re.findall(r"\bSIG[A-Z0-9]+", head)) for head in re.findall(r"(?m)^\.TP\n(.*)", section)]
        self.assertEqual(groups, [{number.name for number in group} for group in
                                  (ENDS, {signal.SIGHUP}, OF_WRITE, OF_ERRORS, OF_STOPS)])


if __name__ == "__main__":
    tap.main()
