#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""make bench: each row gets its figures, in a short form, and an interrupt does not lose those measured before it."""
import json
import os
import re
import signal
import subprocess
import tempfile
import unittest

import harness                  # it makes the paths of lab and tap
import tap
from lab import consumers, measure

BENCH = os.path.join(harness.TOP, "tools", "lab", "bench")
ENV = {**os.environ, "ORNICD": os.path.join(harness.BUILT, "ornicd")}


@unittest.skipUnless(harness.GUEST == "trixie" and harness.HOSTS == "one", "make bench has one guest and one daemon")
class Bench(unittest.TestCase):
    def test_short(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "figures")
            done = subprocess.run([BENCH, "--short", "--runs", "1", "--json", path], capture_output=True, text=True, env=ENV,
                                  timeout=600, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr[-2000:])
            with open(path) as f:
                rows = {row["what"]: row for row in json.load(f)}
        expected = measure.verbs(measure.LONG) + consumers.figures()
        self.assertEqual(list(rows), [figure.what for figure in expected])
        for figure in expected:
            for column in figure.columns():
                self.assertGreater(rows[figure.what][column], 0, "%s, %s" % (figure.what, column))

    def test_interrupt(self):
        """The figures measured until then are printed."""
        # a shell makes its background jobs ignore SIGINT, and what they start inherits that
        bench = subprocess.Popen([BENCH, "--runs", "1", "--only", "4 KiB"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 env=ENV, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(bench.kill)
        said = ""
        for line in bench.stderr:
            said += line
            if re.search("ornic 2/", line):
                break
        bench.send_signal(signal.SIGINT)
        out, err = bench.communicate(timeout=120)
        self.assertEqual(bench.returncode, 130, said + err + out)
        self.assertRegex(out, r"(?m)^RDMA write, 4 KiB +[\d.]+ MiB/s +- +- ")
        self.assertRegex(out, r"(?m)^NVMe read, 4 KiB.* +- +- +- ")


if __name__ == "__main__":
    tap.main()
