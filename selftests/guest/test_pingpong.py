#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The ping-pong examples of rdma-core, polling and with events, which check the data they receive (-c)."""
import harness

PORT = 18515


class PingPong(harness.GuestTest):
    def check(self, place, program, options):
        server, client = ["%s -d %s -g %d %s" % (program, self.device, self.p.gid_index(vm), options)
                          for vm in self.ends(place)]
        out, _ = self.exchange(place, server, client + " {addr}", PORT)
        self.assertRegex(out, r"(?m)iters in .* seconds|^success$")


harness.matrix(
    PingPong,
    rc=("ibv_rc_pingpong", "-n 200 -c"),
    rc_events=("ibv_rc_pingpong", "-n 200 -c -e"),
    rc_1_byte=("ibv_rc_pingpong", "-n 200 -s 1"),
    rc_new_send=("ibv_rc_pingpong", "-N -n 200 -s 16"),
    rc_odd_size=("ibv_rc_pingpong", "-n 50 -s 12345 -c"),
    rc_1_mib=("ibv_rc_pingpong", "-n 20 -s 1048576 -c -e"),
    uc=("ibv_uc_pingpong", "-n 200 -c"),
    uc_events=("ibv_uc_pingpong", "-n 200 -c -e"),
    uc_1_mib=("ibv_uc_pingpong", "-n 20 -s 1048576 -c -e"),
    srq=("ibv_srq_pingpong", "-n 200 -q 8 -c"),
    srq_events=("ibv_srq_pingpong", "-n 200 -q 8 -c -e"),
    xsrq=("ibv_xsrq_pingpong", "-n 200"),
    ud=("ibv_ud_pingpong", "-n 200 -c -s 1024"),
    ud_events=("ibv_ud_pingpong", "-n 200 -c -e -s 1024"),
    ud_small=("ibv_ud_pingpong", "-n 100 -s 1"),
)

if __name__ == "__main__":
    harness.main()
