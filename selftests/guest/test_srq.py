#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Shared receive queues and extended reliable connections, within one VM: runs prog/verbs_srq and prog/verbs_xrc."""
import programs

SRQ = "shared limit empty last_wqe ud resize resize_traffic resize_hostile".split()
XRC = "processes wrong_number other_domain resize".split()


class Shared(programs.LocalTest):
    pass


programs.local_points(Shared, "verbs_srq", SRQ, prefix="srq_")
programs.local_points(Shared, "verbs_xrc", XRC, prefix="xrc_")

if __name__ == "__main__":
    programs.harness.main()
