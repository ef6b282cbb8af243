#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Kinds of memory and of registration, within one VM: runs prog/verbs_memory, whose tests become tests here."""
import re

import harness

TESTS = "zero_based iova empty relaxed huge rereg_writable dm dm_private dmabuf dmabuf_refused".split()


class Memory(harness.GuestTest):
    ornic_only = True

    def one(self, name):
        result = self.a.run("/tmp/selftests/verbs_memory %s %s" % (self.device, name), timeout=120, check=False)
        said = result.out + result.err
        self.assertTrue(re.search(r"^ok \d+ - %s$" % name, said, re.M) and result.rc == 0, said[-1500:])


for test in TESTS:
    setattr(Memory, "test_" + test, lambda self, name=test: self.one(name))

if __name__ == "__main__":
    harness.main()
