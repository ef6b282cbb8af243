#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Static rates and rate limits, within one VM: runs prog/verbs_rate."""
import json

import programs

TESTS = "capabilities refused static_write static_read raw_limit raw_burst raw_change connection".split()


class Rate(programs.LocalTest):
    def test_shown(self):
        """The queue pair's details include its limit."""
        program = self.spawn(self.a, "/tmp/selftests/verbs_rate %s hold" % self.device, 120)
        program.wait_for("# held", 60)
        shown = json.loads(self.a.run("rdma -j -dd res show qp link %s/1" % self.device).out)
        self.assertIn(12345, [qp.get("drv_rate_kbps") for qp in shown])


programs.local_points(Rate, "verbs_rate", TESTS, timeout=120)

if __name__ == "__main__":
    programs.harness.main()
