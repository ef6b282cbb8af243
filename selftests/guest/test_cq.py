#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Completion queues and domains: runs prog/verbs_cq within one VM, one test here for each of its tests.

Several completion vectors need a VM with several processors, which is started for that test.
"""
import os

import programs
from harness import BUILT, PAYLOAD, PROGRAMS, Lab

TESTS = """raw_clock_rate stamps fields one_channel solicited moderation refused overflow ignore_overrun
    resize_under_traffic resize_while_waiting resize_refused thread_domain shared_pd""".split()
COMMAND = "/tmp/selftests/verbs_cq -d %s %s"


class Queues(programs.ProgramTest):
    ornic_only = True

    def check(self, name):
        self.used_vms = not self.said
        if not self.said:
            result = self.a.run(COMMAND % (self.device, " ".join(TESTS)), timeout=180, check=False)
            self.said["all"] = result.out + result.err
        self.judge(self.said["all"], name)

    def test_vectors(self):
        self.used_vms = False
        lab = Lab.up(1, name="vectors-%d" % os.getpid(), smp=3, ornicd=os.path.join(BUILT, "ornicd"), modules=PAYLOAD,
                     provider=PAYLOAD)
        self.addCleanup(lab.down)
        lab.vms[0].push(PROGRAMS, "/tmp/selftests")
        result = lab.vms[0].run(COMMAND % (self.device, "vectors"), timeout=60, check=False)
        self.judge(result.out + result.err, "vectors")


for name in TESTS:
    setattr(Queues, "test_" + name, lambda self, name=name: self.check(name))

if __name__ == "__main__":
    programs.harness.main()
