#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""selftests/run: its result for passed, failed and skipped points, and its end by a signal."""
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.dont_write_bytecode = True

import tap                      # noqa: E402

RUN = os.path.join(HERE, "..", "run")
PATIENCE = 60


def in_background():
    """Ignore SIGINT, as a shell does for a job in the background, but not SIGHUP, although this test may run under nohup."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Runner(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="ornic-runner-")
        self.addCleanup(holder.cleanup)
        self.dir = holder.name

    def program(self, name, text):
        folder = os.path.join(self.dir, "selftests", "unit")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)

    def start(self, *tests):
        return subprocess.Popen([RUN, *tests], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env={**os.environ, "O": self.dir}, preexec_fn=in_background)

    def test_counts(self):
        self.program("test_good", "printf 'ok 1 - a\\nok 2 - b # SKIP no reason\\n1..2\\n'\n")
        self.program("test_bad", "printf 'ok 1 - a\\nnot ok 2 - b\\n1..2\\n'\nexit 1\n")
        for tests, status, last in ((("unit/test_good",), 0, "1 passed, 0 failed, 1 skipped"),
                                    (("unit/test_good", "unit/test_bad"), 1, "2 passed, 1 failed, 1 skipped")):
            runner = self.start(*tests)
            text, _ = runner.communicate(timeout=PATIENCE)
            self.assertEqual((runner.returncode, text.splitlines()[-1]), (status, last), text)

    def test_reason(self):
        """The summary has the first diagnostic line of a failure, which is its reason, and no other line."""
        self.program("test_bad", "printf 'not ok 1 - a\\n# a reason\\n# a frame\\nok 2 - b\\n# 2.0 s\\n1..2\\n'\nexit 1\n")
        text, _ = self.start("unit/test_bad").communicate(timeout=PATIENCE)
        summary = text.split("Failed:\n")[1]
        self.assertIn("FAIL  unit/test_bad: a: a reason\n", summary)
        self.assertNotIn("frame", summary)

    def test_signals(self):
        """A signal to the runner, also one that its shell ignores, ends its programs, too."""
        pid_file = os.path.join(self.dir, "pid")
        self.program("test_slow", "echo $$ > %s.new && mv %s.new %s\nexec sleep 1000\n" % (pid_file, pid_file, pid_file))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number.name):
                runner = self.start("unit/test_slow")
                end = time.monotonic() + PATIENCE
                while not os.path.exists(pid_file) and time.monotonic() < end:
                    time.sleep(0.05)
                with open(pid_file, encoding="utf-8") as f:
                    pid = int(f.read())
                os.unlink(pid_file)
                runner.send_signal(number)
                text, _ = runner.communicate(timeout=PATIENCE)
                self.assertEqual(runner.returncode, 1, text)
                self.assertIn("interrupted; until then 0 passed", text)
                self.assertFalse(os.path.exists("/proc/%d" % pid), text)

    def test_nohup(self):
        """A runner that was started with nohup goes on after the terminal is gone."""
        self.program("test_hangup", "kill -HUP $PPID\nsleep 1\nprintf 'ok 1 - a\\n1..1\\n'\n")
        done = subprocess.run(["nohup", RUN, "unit/test_hangup"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env={**os.environ, "O": self.dir}, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "1 passed, 0 failed, 0 skipped"), done.stdout)


if __name__ == "__main__":
    tap.main()
