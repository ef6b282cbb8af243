# SPDX-License-Identifier: GPL-2.0
"""The kernel's NVMe target and host over RDMA: consumers of verbs that drain their queue pairs."""
SUBSYSTEM = "/sys/kernel/config/nvmet/subsystems/ornic"
PORT = "/sys/kernel/config/nvmet/ports/7"
HOST = "/sys/class/nvme/nvme0"


def target(test, vm, address):
    """A RAM disk of 256 MiB, exported by a VM until the end of the test."""
    test.addCleanup(vm.run, "rm -f {p}/subsystems/ornic; rmdir {p} {s}/namespaces/1 {s}; rmmod nvmet_rdma nvmet brd".format(
        p=PORT, s=SUBSYSTEM), check=False)
    vm.run("modprobe -a nvmet nvmet-rdma && modprobe brd rd_nr=1 rd_size=262144 && "
           "{{ mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config; }} && "
           "mkdir {s} && echo 1 > {s}/attr_allow_any_host && mkdir {s}/namespaces/1 && "
           "echo -n /dev/ram0 > {s}/namespaces/1/device_path && echo 1 > {s}/namespaces/1/enable && "
           "mkdir {p} && echo -n rdma > {p}/addr_trtype && echo -n ipv4 > {p}/addr_adrfam && "
           "echo -n {a} > {p}/addr_traddr && echo -n 4420 > {p}/addr_trsvcid && ln -s {s} {p}/subsystems/ornic"
           .format(s=SUBSYSTEM, p=PORT, a=address), timeout=60)


def connect(vm, address):
    """The disk becomes /dev/nvme0n1 of a VM."""
    vm.run("echo transport=rdma,traddr=%s,trsvcid=4420,nqn=ornic > /dev/nvme-fabrics; "
           "until [ -b /dev/nvme0n1 ]; do sleep 0.1; done" % address, timeout=60)


def disconnect(vm):
    """The disk goes, if it is there."""
    vm.run("[ ! -d %s ] || echo 1 > %s/delete_controller" % (HOST, HOST), timeout=60)
