#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""NVMe over RDMA between the VMs: the kernel's own target and host, a file system on top."""
import harness
import nvme


class Nvme(harness.GuestTest):
    ornic_only = True

    def test_file_system(self):
        """Reloads the RDMA driver in both VMs first, because ib_core keeps the CQs of its pool until the device goes."""
        self.addCleanup(nvme.ib_again, self.a, self.device)
        self.addCleanup(nvme.ib_again, self.b, self.device)
        nvme.target(self, self.b, self.p.address(self.b))
        nvme.file_system(self, self.a, self.p.address(self.b))


if __name__ == "__main__":
    harness.main()
