#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Shared receive queues and extended reliable connections, within one VM: runs prog/verbs_srq and prog/verbs_xrc, whose tests
become tests here."""
import re

import harness

SRQ = "shared limit empty last_wqe ud".split()
XRC = "processes wrong_number other_domain".split()


class Shared(harness.GuestTest):
    ornic_only = True

    def one(self, program, name):
        result = self.a.run("/tmp/selftests/%s %s %s" % (program, self.device, name), timeout=120, check=False)
        said = result.out + result.err
        self.assertTrue(re.search(r"^ok \d+ - %s$" % name, said, re.M) and result.rc == 0, said[-1500:])


for program, names in (("verbs_srq", SRQ), ("verbs_xrc", XRC)):
    for case in names:
        def test(self, program=program, name=case):
            self.one(program, name)
        setattr(Shared, "test_%s_%s" % (program[6:], case), test)

if __name__ == "__main__":
    harness.main()
