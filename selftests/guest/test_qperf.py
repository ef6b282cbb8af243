#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""qperf's RDMA tests, connected by rdma_cm: without it qperf addresses its peers by LID, and RoCE has none."""
import harness

PORT = 19765


class Qperf(harness.GuestTest):
    def check(self, place, test):
        there, here = self.ends(place)
        server = self.spawn(there, "qperf", 90)
        there.wait_listen(PORT, 30)
        address = self.p.address(there)
        result = here.run("qperf -i %s:1 -t 1 -cm 1 %s %s" % (self.device, address, test), timeout=60, check=False)
        here.run("qperf %s quit" % address, timeout=30, check=False)
        if "failed to create address handle" in result.out + result.err + server.text():
            self.skipTest("this qperf makes address handles without a GRH, which no RoCE device takes")
        self.assertEqual(result.rc, 0, result.out + result.err + server.text())
        self.assertRegex(result.out, r"(bw|latency|rate) += +[\d.]+")
        server.wait(30)


harness.matrix(Qperf, rc_bw=("rc_bw",), rc_lat=("rc_lat",), ud_lat=("ud_lat",), rc_rdma_write_lat=("rc_rdma_write_lat",))

if __name__ == "__main__":
    harness.main()
