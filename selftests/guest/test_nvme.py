#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""NVMe over RDMA between the VMs: the kernel's own target and host, a file system on top."""
import harness
import nvme

LAYERS = "rdma_ucm rdma_cm ib_umad ornic_ib"
UPDATES = "/lib/modules/$(uname -r)/updates"


class Nvme(harness.GuestTest):
    ornic_only = True
    needs_modules = True

    def ib_again(self, vm):
        """ib_core keeps the CQs of its pool until the device goes."""
        vm.run("rmmod nvme_rdma; for m in %s; do [ ! -d /sys/module/$m ] || rmmod $m || exit; done; modprobe rdma_ucm; "
               "insmod %s/ornic_ib.ko" % (LAYERS, UPDATES), timeout=60)
        vm.run("until rdma link show %s/1 | grep -q 'state ACTIVE'; do sleep 0.05; done; "
               "until grep -q ffff: /sys/class/infiniband/%s/ports/1/gids/*; do sleep 0.05; done"
               % (self.device, self.device), timeout=30)

    def test_file_system(self):
        """Files survive unmounting and a new connection; raw reads and writes come back as they went."""
        self.addCleanup(self.ib_again, self.a)
        self.addCleanup(self.ib_again, self.b)
        nvme.target(self, self.b, self.p.address(self.b))
        self.a.run("modprobe nvme-rdma && dd if=/dev/urandom of=/tmp/nvme.in bs=1M count=48", timeout=60)
        self.addCleanup(self.a.run, "rm -f /tmp/nvme.in /tmp/nvme.out")
        self.addCleanup(nvme.disconnect, self.a)
        nvme.connect(self.a, self.p.address(self.b))
        self.addCleanup(self.a.run, "umount /mnt", check=False)
        self.a.run("dd if=/tmp/nvme.in of=/dev/nvme0n1 bs=1M oflag=direct && "
                   "dd if=/dev/nvme0n1 of=/tmp/nvme.out bs=64k count=768 iflag=direct && cmp /tmp/nvme.in /tmp/nvme.out",
                   timeout=120)
        self.a.run("busybox mke2fs /dev/nvme0n1 && mount /dev/nvme0n1 /mnt && cp /tmp/nvme.in /mnt/file && umount /mnt",
                   timeout=120)
        nvme.disconnect(self.a)
        nvme.connect(self.a, self.p.address(self.b))
        self.a.run("mount /dev/nvme0n1 /mnt && cmp /tmp/nvme.in /mnt/file && umount /mnt", timeout=120)


if __name__ == "__main__":
    harness.main()
