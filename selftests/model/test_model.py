#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The same races, and that of full event queues, proved with spin: no wake is lost, unless a fence is removed.

ORN-RNG-5, ORN-RNG-6, ORN-RNG-11, ORN-RNG-12, ORN-RNG-20, ORN-RNG-21, ORN-GEN-6.
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lib"))

import program  # noqa: E402
import tap      # noqa: E402


class Model(unittest.TestCase):
    def test_races(self):
        said = program.check(self, "selftests/model/run")
        self.assertIn("holds", said)
        self.assertIn("loses", said)


if __name__ == "__main__":
    tap.main()
