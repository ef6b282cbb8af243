#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The table of make bench: a failed row gives its reason and does not affect the other rows."""
import os
import sys
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
for folder in ("tools", "selftests/lib"):
    sys.path.insert(0, os.path.join(TOP, folder))
sys.dont_write_bytecode = True

import tap                      # noqa: E402
from lab import measure         # noqa: E402
from lab.errors import LabError     # noqa: E402


class Rows(unittest.TestCase):
    """The table, with figures that need no VM."""

    class Made(measure.Figure):
        """A measurement with a known figure for ornic, or with a reason to fail."""

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

    def test_infinite_peak(self):
        """The parser does not confuse average, peak and message rate."""
        text = " #bytes  #iterations  BW peak[MiB/sec]  BW average[MiB/sec]  MsgRate[Mpps]\n 1048576  5  %s  1234.56  0.001235\n"
        for peak in "2000.00", "inf":
            self.assertEqual(measure.last_row(text % peak)[3], 1234.56)
        with self.assertRaises(ValueError):
            measure.last_row("Couldn't connect\n")


if __name__ == "__main__":
    tap.main()
