#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Every byte of every operation, compared at the remote side: runs prog/verbs_data.

Each of its tests becomes one here, for polling and events, between the VMs and within one.
"""
import programs

PORT = 7471
OPERATIONS = """send send_imm write write_imm read cmp_swap fetch_add ud_send ud_send_imm group_send
    inline_send inline_write inline_write_imm inline_ud_send inline_sge_send
    sge_send sge_write sge_read sge_ud_send huge_send huge_write huge_read own_mr_send own_mr_write own_mr_read
    qps_send qps_write qps_read qps_fetch_add unsignaled_send unsignaled_write unsignaled_read""".split()

OVER_IPV6 = "send_imm write read fetch_add ud_send ud_send_imm group_send".split()


class Data(programs.ProgramTest):
    program = "verbs_data"
    port = PORT

    def test_big_write(self):
        """One message of 1 GiB."""
        size = 1 << 30 if self.p.is_ornic else 1 << 24
        self.one_point("between", "-b %d" % size, "big_write", timeout=180)

    def test_a_spoiled_byte_is_found(self):
        """The comparison detects errors: with one bit flipped in each target every test fails."""
        said = self.ask("between", "-x", "send write read ud_send huge_read")
        self.assertEqual(said.count("not ok"), 5, said)


class DataIPv6(programs.ProgramTest):
    """The same over IPv6."""

    program = "verbs_data"
    port = PORT
    both = "-6"


programs.points(Data, OPERATIONS, poll="", events="-e")
programs.points(DataIPv6, OVER_IPV6, places=("between",), poll="")

if __name__ == "__main__":
    programs.harness.main()
