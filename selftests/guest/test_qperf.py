#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""qperf's RDMA tests, connected by rdma_cm: without it qperf addresses its peers by LID, which RoCE does not have.

ud_lat cannot run over RoCE on any device: this qperf creates its address handles without a GRH, with -cm and without. The
kernel rejects that for RoCE, as rdma-core's test_addr requires. The test is skipped only if Soft-RoCE in the same VMs gives the
same error.

qperf's server tells its port to the client before it listens there. A faster client is rejected (no such service), on any
device, and runs again.
"""
import harness
from lab.measure import SoftRoce      # harness made the path

PORT = 19765
TOO_EARLY = "unexpected event from RDMA CM: Event rejected"
ATTEMPTS = 5
NO_GRH = "failed to create address handle: Invalid argument"


class Base(harness.GuestTest):
    def qperf(self, place, device, net, test):
        """Return status and output of client and server."""
        there, here = self.ends(place)
        server = self.spawn(there, "qperf", 90)
        there.wait_listen(PORT, 30)
        address = "%s.0.%d" % (net, there.number + 1)
        result = here.run("qperf -i %s:1 -t 1 -cm 1 %s %s" % (device, address, test), timeout=60, check=False)
        here.run("qperf %s quit" % address, timeout=30, check=False)
        server.wait(30)
        return result.rc, result.out + result.err + server.text()


class Connected(Base):
    def check(self, place, test):
        for _ in range(ATTEMPTS):
            status, said = self.qperf(place, self.device, self.p.net, test)
            if TOO_EARLY not in said:
                break
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"(bw|latency|rate) += +[\d.]+")


class Datagrams(Base):
    def check(self, place):
        status, said = self.qperf(place, self.device, self.p.net, "ud_lat")
        if status == 0:
            self.assertRegex(said, r"latency += +[\d.]+")
            return
        self.assertIn(NO_GRH, said)
        with SoftRoce(self.p.lab):
            status, said = self.qperf(place, "rxe0", "10.77", "ud_lat")
        self.assertNotEqual(status, 0, "Soft-RoCE runs it: " + said)
        self.assertIn(NO_GRH, said)
        self.skipTest("this qperf makes address handles without a GRH; tried on Soft-RoCE: the same error")


harness.matrix(Connected, rc_bw=("rc_bw",), rc_lat=("rc_lat",), rc_rdma_write_lat=("rc_rdma_write_lat",))
harness.matrix(Datagrams, ud_lat=())

if __name__ == "__main__":
    harness.main()
