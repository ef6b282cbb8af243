#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""NVMe over RDMA between the VMs: the kernel's own target and host, a file system on top."""
import harness
import nvme


class Nvme(harness.GuestTest):
    ornic_only = True

    def setUp(self):
        """Reloads the RDMA driver in both VMs at the end, because ib_core keeps the CQs of its pool until the device goes."""
        super().setUp()
        self.addCleanup(nvme.ib_again, self.a, self.device)
        self.addCleanup(nvme.ib_again, self.b, self.device)
        nvme.target(self, self.b, self.p.address(self.b))

    def test_file_system(self):
        nvme.file_system(self, self.a, self.p.address(self.b))

    def test_suspend(self):
        """The host of a connection suspends, then the target does, while the host writes: what was written before is intact."""
        harness.need_suspend(self, self.a)
        self.a.run("modprobe nvme-rdma")
        self.addCleanup(self.a.run, "rm -f /tmp/nvme.in /tmp/nvme.out; rmmod nvme_rdma", check=False)
        self.addCleanup(nvme.disconnect, self.a)
        for vm in (self.a, self.b):
            nvme.connect(self.a, self.p.address(self.b))
            self.a.run("dd if=/dev/urandom of=/tmp/nvme.in bs=1M count=4 && dd if=/tmp/nvme.in of=/dev/nvme0n1 bs=1M oflag=direct",
                       timeout=60)
            # ends at an error only; conv: without its disk, dd would make an ordinary file
            writer = self.spawn(self.a, "while dd if=/dev/zero of=/dev/nvme0n1 bs=64k seek=64 count=900 oflag=direct conv=nocreat,notrunc; "
                                "do echo written; done 2>&1", 120)
            writer.wait_for("written", 60)
            harness.suspend(vm)
            harness.wait_usable(vm, self.device)
            nvme.disconnect(self.a)
            writer.wait(60)
            self.assertRegex(writer.text(), "dd: (error writing|failed to open)")
            nvme.listen_again(self.b)
            nvme.connect(self.a, self.p.address(self.b))
            self.a.run("dd if=/dev/nvme0n1 of=/tmp/nvme.out bs=1M count=4 iflag=direct && cmp /tmp/nvme.in /tmp/nvme.out", timeout=60)
            nvme.disconnect(self.a)


if __name__ == "__main__":
    harness.main()
