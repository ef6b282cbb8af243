#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Operations over bad networks: all succeed with the right data, in order, atomics once; the checker finds no violation."""
import badnet
import harness

harness.OWN_LAB = {"ornicd_args": badnet.ORNICD_ARGS}
XRC_PORT = 18515
XRC_TIMEOUT_NS = 4096 << 14     # timeout of the example's queue pairs


class Networks(badnet.BadNetwork):
    ornic_only = True
    newer = ("verbs_ex", 7480, "mixed")         # SEND with invalidate, FLUSH, ATOMIC WRITE

    def test_xrc(self):
        """Extended reliable connections, by rdma-core's example: each message arrives once and in order."""
        server, client = ["ibv_xsrq_pingpong -d %s -g %d -n 2000 -s 3000" % (self.device, self.p.gid_index(vm))
                          for vm in self.ends("between")]
        with self.network(badnet.NETWORKS["all"], XRC_TIMEOUT_NS):
            self.exchange("between", server, client + " {addr}", XRC_PORT, badnet.PATIENCE)


badnet.networks(Networks, ("between",))
badnet.networks(Networks, ("within",), ("all",))

if __name__ == "__main__":
    harness.main()
