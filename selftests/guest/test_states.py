#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""States, attributes and events of queue pairs, within one VM: runs prog/verbs_states."""
import programs

TESTS = """transitions_rc transitions_uc transitions_ud attributes_rc attributes_uc attributes_ud reset_forgets_rc
    reset_forgets_uc reset_forgets_ud sq_drained_rc sq_drained_uc sq_drained_ud sqe_uc sqe_ud ring_fatal_rc ring_fatal_uc
    migration_rc migration_uc data_in_order_rc""".split()


class States(programs.LocalTest):
    pass


programs.local_points(States, "verbs_states", TESTS, prefix="within_", device="-d %s", timeout=300)

if __name__ == "__main__":
    programs.harness.main()
