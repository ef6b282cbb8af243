# SPDX-License-Identifier: GPL-2.0
"""The kernel's NVMe target and host over RDMA: consumers of verbs that drain their queue pairs."""
import harness

SUBSYSTEM = "/sys/kernel/config/nvmet/subsystems/ornic"
PORT = "/sys/kernel/config/nvmet/ports/7"
HOST = "/sys/class/nvme/nvme0"
LAYERS = "rdma_ucm rdma_cm ib_umad ornic_ib"
MIB = 16                                # written by 16 requests, read by 256
UPDATES = "/lib/modules/$(uname -r)/updates"


def target(test, vm, address):
    """Export a RAM disk of 64 MiB from a VM until the end of the test."""
    test.addCleanup(vm.run, "rm -f {p}/subsystems/ornic; rmdir {p} {s}/namespaces/1 {s}; rmmod nvmet_rdma nvmet brd".format(
        p=PORT, s=SUBSYSTEM), check=False)
    vm.run("modprobe -a nvmet nvmet-rdma && modprobe brd rd_nr=1 rd_size=65536 && "
           "{{ mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config; }} && "
           "mkdir {s} && echo 1 > {s}/attr_allow_any_host && mkdir {s}/namespaces/1 && "
           "echo -n /dev/ram0 > {s}/namespaces/1/device_path && echo 1 > {s}/namespaces/1/enable && "
           "mkdir {p} && echo -n rdma > {p}/addr_trtype && echo -n ipv4 > {p}/addr_adrfam && "
           "echo -n {a} > {p}/addr_traddr && echo -n 4420 > {p}/addr_trsvcid && ln -s {s} {p}/subsystems/ornic"
           .format(s=SUBSYSTEM, p=PORT, a=address), timeout=60)


def listen_again(vm):
    """Make the target listen again: it stops when its device is removed (6.12)."""
    vm.run("rm {p}/subsystems/ornic && ln -s {s} {p}/subsystems/ornic".format(s=SUBSYSTEM, p=PORT))


def connect(vm, address):
    """Connect a VM to the disk, which becomes /dev/nvme0n1."""
    vm.run("echo transport=rdma,traddr=%s,trsvcid=4420,nqn=ornic > /dev/nvme-fabrics; "
           "until [ -b /dev/nvme0n1 ]; do sleep 0.1; done" % address, timeout=60)


def disconnect(vm):
    """Disconnect the disk if it is connected."""
    vm.run("[ ! -d %s ] || echo 1 > %s/delete_controller" % (HOST, HOST), timeout=60)


def file_system(test, vm, address):
    """Check data that a VM writes to the disk: raw, and in files that survive unmounting and a new connection."""
    vm.run("modprobe nvme-rdma && dd if=/dev/urandom of=/tmp/nvme.in bs=1M count=%d" % MIB, timeout=60)
    test.addCleanup(vm.run, "rm -f /tmp/nvme.in /tmp/nvme.out; rmmod nvme_rdma", check=False)
    test.addCleanup(disconnect, vm)
    connect(vm, address)
    test.addCleanup(vm.run, "umount /mnt", check=False)
    vm.run("dd if=/tmp/nvme.in of=/dev/nvme0n1 bs=1M oflag=direct && "
           "dd if=/dev/nvme0n1 of=/tmp/nvme.out bs=64k count=%d iflag=direct && cmp /tmp/nvme.in /tmp/nvme.out" % (MIB * 16), timeout=120)
    vm.run("busybox mke2fs /dev/nvme0n1 && mount -t ext4 /dev/nvme0n1 /mnt && cp /tmp/nvme.in /mnt/file && umount /mnt", timeout=120)
    disconnect(vm)
    connect(vm, address)
    vm.run("mount -t ext4 /dev/nvme0n1 /mnt && cmp /tmp/nvme.in /mnt/file && umount /mnt", timeout=120)


def ib_again(vm, device):
    """Reload the RDMA driver of a VM: ib_core keeps the CQs of its pool until the device goes."""
    vm.run("rmmod nvme_rdma; for m in %s; do [ ! -e /sys/module/$m/initstate ] || rmmod $m || exit; done; modprobe rdma_ucm; "
           "insmod %s/ornic_ib.ko" % (LAYERS, UPDATES), timeout=60)
    harness.wait_usable(vm, device)
