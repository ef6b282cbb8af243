#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Completion queues and domains: runs prog/verbs_cq within one VM, whose tests become tests here."""
import programs

TESTS = """raw_clock_rate stamps fields vectors one_channel solicited moderation refused overflow ignore_overrun
    resize_under_traffic resize_while_waiting resize_refused thread_domain shared_pd""".split()


class Queues(programs.ProgramTest):
    ornic_only = True

    def check(self, name):
        self.used_vms = not self.said
        if not self.said:
            result = self.a.run("/tmp/selftests/verbs_cq -d %s %s" % (self.device, " ".join(TESTS)), timeout=180, check=False)
            self.said["all"] = result.out + result.err
        self.judge(self.said["all"], name)


for name in TESTS:
    setattr(Queues, "test_" + name, lambda self, name=name: self.check(name))

if __name__ == "__main__":
    programs.harness.main()
