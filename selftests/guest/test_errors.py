#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The right status and event at both ends for each error: runs prog/verbs_errors, one test here for each of its tests."""
import programs

PORT = 7472
KINDS = "write read atomic".split()
FAULTS = "rkey_tag rkey_index before behind wrap other_pd mr_right qp_right mr_gone".split()
TESTS = ["%s_%s" % (fault, kind) for fault in FAULTS for kind in KINDS] + """
    too_long too_long_packets receive_bad_lkey misaligned_atomic one_read_at_a_time too_many_reads reset_and_reuse
    lkey_tag_send lkey_tag_write lkey_tag_read lkey_beyond_send lkey_beyond_read lkey_other_pd_write lkey_read_only_read
    flush_in_order fault_then_flush cq_overflow_send cq_overflow_recv destroy_busy destroy_in_use post_refused reg_refused
    rnr_exhausted rnr_recovered peer_destroyed peer_in_err comm_est ud_wrong_qkey ud_no_such_qp ud_too_long ud_beyond_mtu
    bad_address_handle""".split()


class Errors(programs.ProgramTest):
    program = "verbs_errors"
    port = PORT


programs.points(Errors, TESTS, both="" if programs.harness.DEVICE.startswith("ornic") else "-n")

if __name__ == "__main__":
    programs.harness.main()
