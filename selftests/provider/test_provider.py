#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The provider's unit tests, built and run in the build root against the guest's rdma-core; plain and sanitized."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lib"))

import program  # noqa: E402
import tap      # noqa: E402


def make(case, folder, *more):
    out = os.path.join(program.BUILD, "selftests", "provider", folder)
    os.makedirs(out, exist_ok=True)
    return program.check(case, "tools/lab/lab", "buildroot-run", "--", "make", "-s", "-C", "tools/libornic",
                         "RDMA_CORE=/usr/src/rdma-core", "O=" + out, *more, "check")


class Provider(unittest.TestCase):
    def test_unit(self):
        make(self, "plain")

    def test_unit_sanitized(self):
        flags = "-fsanitize=address,undefined -fno-sanitize-recover=all"
        make(self, "san", "CFLAGS=-O1 -g " + flags, "LDFLAGS=" + flags)

    def test_threads_sanitized(self):
        """Threads that share queues, and nothing races."""
        make(self, "tsan", "CFLAGS=-O1 -g -fsanitize=thread", "LDFLAGS=-fsanitize=thread", "tests_of=threads")


if __name__ == "__main__":
    tap.main()
