#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The two races between host and device as two threads: the provider's ring.h against the daemon's, in the build root."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lib"))

import program  # noqa: E402
import tap      # noqa: E402

FOLDER = os.path.join(program.BUILD, "selftests", "stress")
INSIDE = ("tools/lab/lab", "buildroot-run", "--")


class Rings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program.check(cls("test_post_against_sleep"), *INSIDE, "make", "-s", "-C", "selftests/stress", "O=" + FOLDER,
                      "RDMA_CORE=/usr/src/rdma-core")

    def test_post_against_sleep(self):
        """ORN-RNG-5 against ORN-RNG-6, across index wraps."""
        program.check(self, *INSIDE, os.path.join(FOLDER, "post_sleep"))

    def test_arm_against_completion(self):
        """ORN-RNG-9 to ORN-RNG-12, across index wraps."""
        program.check(self, *INSIDE, os.path.join(FOLDER, "arm_complete"))


if __name__ == "__main__":
    tap.main()
