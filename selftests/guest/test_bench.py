#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""make bench: each row gets its figures, in a short form; one that fails says why and does not cost the others; an interrupt neither."""
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
from lab.errors import LabError

BENCH = os.path.join(harness.TOP, "tools", "lab", "bench")
ENV = {**os.environ, "ORNICD": os.path.join(harness.BUILT, "ornicd")}


class Rows(unittest.TestCase):
    """The table, of figures that need no VM."""

    class Made(measure.Figure):
        """Its figure for ornic is known, or is a reason to fail."""

        def __init__(self, what, made):
            super().__init__(what, "MiB/s")
            self.made = made

        def ornic(self, _lab):
            if isinstance(self.made, Exception):
                raise self.made
            return self.made

    def test_failure_keeps_the_others(self):
        rows = [self.Made("first", 3.0), self.Made("second", LabError("it is\ntoo dark")), self.Made("third", 5.0)]
        measure.measure_column(None, rows, "ornic", 1)
        text = measure.table(rows, "tcg", 1)
        self.assertRegex(text, r"(?m)^first +3\.0 MiB/s +- ")
        self.assertRegex(text, r"(?m)^second +failed ")
        self.assertRegex(text, r"(?m)^third +5\.0 MiB/s ")
        self.assertRegex(text, r"(?m)^failed: second, ornic: it is too dark$")
        self.assertEqual([row.complete() for row in rows], [True, False, True])

    def test_shared_figure_is_measured_once(self):
        rows = measure.verbs(measure.LONG)
        calls = []
        for row in rows:
            row.virtio = lambda lab, row=row: calls.append(row.unit) or 7.0
        measure.measure_column(None, rows, "virtio", 1)
        self.assertEqual(sorted(calls), ["MiB/s", "us"])
        self.assertTrue(all(row.values["virtio"] == 7.0 for row in rows))


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
        bench = subprocess.Popen([BENCH, "--runs", "1", "--only", "4 KiB"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 env=ENV)
        self.addCleanup(bench.kill)
        for line in bench.stderr:
            if re.search("ornic 2/", line):
                break
        bench.send_signal(signal.SIGINT)
        out, err = bench.communicate(timeout=120)
        self.assertEqual(bench.returncode, 130, out + err)
        self.assertRegex(out, r"(?m)^RDMA write, 4 KiB +[\d.]+ MiB/s +- +- ")
        self.assertRegex(out, r"(?m)^NVMe read, 4 KiB.* +- +- +- ")


if __name__ == "__main__":
    tap.main()
