# SPDX-License-Identifier: GPL-2.0
"""NVMe over RDMA between ornic and Soft-RoCE, each as target and as host: the kernel's own consumers at both ends."""
import harness
import nvme
import peers


class Nvme(peers.Roles, harness.GuestTest):
    def file_system(self, place):
        """Reload both drivers first, because ib_core keeps the CQs of its pool until the device goes."""
        target, host = self.ends(place)
        self.addCleanup(self.p.rxe_again)
        self.addCleanup(nvme.ib_again, self.a, self.device)
        nvme.target(self, target, self.p.address(target))
        nvme.file_system(self, host, self.p.address(target))


peers.add(Nvme, "file_system", {"file_system": ()})
