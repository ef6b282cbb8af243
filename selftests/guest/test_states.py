#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""States, attributes and events of queue pairs: runs prog/verbs_states, whose tests become tests here."""
import re

import harness

TESTS = """transitions_rc transitions_uc transitions_ud attributes_rc attributes_uc attributes_ud reset_forgets_rc
    reset_forgets_uc reset_forgets_ud sq_drained_rc sq_drained_uc sq_drained_ud sqe_uc sqe_ud ring_fatal_rc ring_fatal_uc
    migration_rc migration_uc data_in_order_rc""".split()


class States(harness.GuestTest):
    ornic_only = True

    def check(self, _place, name):
        said = self.a.run("/tmp/selftests/verbs_states -d %s %s" % (self.device, name), timeout=300, check=False)
        point = re.search(r"^(ok|not ok) \d+ - %s\n((?:# .*\n)*)" % name, said.out, re.M)
        self.assertTrue(point, "no result: " + said.out + said.err)
        self.assertEqual(point.group(1), "ok", point.group(2))


harness.matrix(States, ("within",), **{name: (name,) for name in TESTS})

if __name__ == "__main__":
    harness.main()
