#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Model checks with spin: posting against sleeping, completing against arming, events held for a full event queue. No wakeup is
lost, and each model without one of its fences or polls loses one.

ORN-RNG-5, ORN-RNG-6, ORN-RNG-11, ORN-RNG-12, ORN-RNG-20, ORN-RNG-21, ORN-GEN-6.
"""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lib"))

import program  # noqa: E402
import tap      # noqa: E402


class Model(unittest.TestCase):
    def test_races(self):
        said = program.check(self, "selftests/model/run")
        self.assertEqual(len(re.findall("^ok - ", said, re.M)), 12)


if __name__ == "__main__":
    tap.main()
