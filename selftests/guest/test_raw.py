#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Raw packet queue pairs, flows and receive scaling of a process: runs prog/verbs_raw, whose tests become tests here."""
import re

import harness

TESTS = "match priority vlan drop kernel unprivileged rss".split()


class Raw(harness.GuestTest):
    ornic_only = True

    def one(self, name):
        result = self.a.run("/tmp/selftests/verbs_raw %s %s" % (self.device, name), timeout=60, check=False)
        said = result.out + result.err
        self.assertTrue(re.search(r"^ok \d+ - %s$" % name, said, re.M) and result.rc == 0, said[-1500:])


for test in TESTS:
    setattr(Raw, "test_" + test, lambda self, name=test: self.one(name))

if __name__ == "__main__":
    harness.main()
