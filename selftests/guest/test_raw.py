#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Raw packet queue pairs, flows and receive scaling of a process, within one VM: runs prog/verbs_raw, whose test "unprivileged"
covers ORN-ETH-12."""
import programs

TESTS = "match priority vlan drop kernel unprivileged rss wq_state wq_request".split()


class Raw(programs.LocalTest):
    pass


programs.local_points(Raw, "verbs_raw", TESTS, timeout=60)

if __name__ == "__main__":
    programs.harness.main()
