# SPDX-License-Identifier: GPL-2.0
"""Figures of the kernel's own consumers: NVMe over Fabrics, whose target uses rdma_rw, and the network stack.

Both sides are stock modules. The target's disk is a null_blk, which completes requests without touching data, so that only the
transport is measured. Each row sets up its consumer and removes it.
"""
import contextlib

from .errors import LabError
from .measure import MIB, ORNIC, VIRTIO, Figure, search

ORNIC_IF = "$(ls -d /sys/bus/pci/drivers/ornic/*/net/* | head -n 1 | xargs basename)"
NVMET = "/sys/kernel/config/nvmet"
SUBSYSTEM = NVMET + "/subsystems/bench"
PORT = NVMET + "/ports/1"
EXPORT = """set -e
modprobe -a null_blk nvmet-{transport}
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
mkdir {s} {s}/namespaces/1 {p}
echo 1 > {s}/attr_allow_any_host
echo -n /dev/nullb0 > {s}/namespaces/1/device_path
echo 1 > {s}/namespaces/1/enable
echo -n {transport} > {p}/addr_trtype
echo -n ipv4 > {p}/addr_adrfam
echo -n {address} > {p}/addr_traddr
echo -n 4420 > {p}/addr_trsvcid
ln -s {s} {p}/subsystems/bench"""
WITHDRAW = "rm -f {p}/subsystems/bench; rmdir {p} {s}/namespaces/1 {s}"
CONNECT = """set -e
modprobe nvme-{transport}
echo transport={transport},traddr={address},trsvcid=4420,nqn=bench > /dev/nvme-fabrics
until [ -b /dev/nvme0n1 ]; do sleep 0.1; done"""
DISCONNECT = "for d in /sys/class/nvme/nvme*; do [ ! -e $d ] || echo 1 > $d/delete_controller; done"
# Prints the seconds that all streams took; each is one dd, which waits for each of its requests.
STREAMS = """start=$EPOCHREALTIME; pids=
for i in $(seq {streams}); do dd {way} bs={size} count={count} 2>/tmp/dd.$i & pids="$pids $!"; done
for p in $pids; do wait $p || {{ cat /tmp/dd.*; exit 1; }}; done
echo "took $(echo "$EPOCHREALTIME $start" | awk '{{ print $1 - $2 }}')" """


class Nvme(Figure):
    """Direct I/O of one size by several processes at once. Small requests are measured in requests per second, large ones in
    bytes per second."""

    def __init__(self, what, way, size, counts, effort=1, streams=8):
        super().__init__(what, "MiB/s" if size >= MIB else "IO/s")
        self.decimals = 1 if size >= MIB else 0
        self.way = {"read": "if=/dev/nvme0n1 of=/dev/null iflag=direct", "write": "if=/dev/zero of=/dev/nvme0n1 oflag=direct"}[way]
        self.size, self.streams = size, streams
        self.counts = {column: max(4, int(n * effort)) for column, n in counts.items()}

    @contextlib.contextmanager
    def disk(self, lab, transport, address):
        names = {"s": SUBSYSTEM, "p": PORT, "transport": transport, "address": address}
        host, target = lab.vm(0), lab.vm(1)
        try:
            target.run(EXPORT.format(**names), timeout=60)
            host.run(CONNECT.format(**names), timeout=60)
            yield host
        finally:
            host.run(DISCONNECT, check=False)
            target.run(WITHDRAW.format(**names), check=False)

    def run(self, lab, column, transport, address):
        count = self.counts[column]
        with self.disk(lab, transport, address) as host:
            out = host.run(STREAMS.format(streams=self.streams, way=self.way, size=self.size, count=count), timeout=300).out
        done = count * self.streams * (self.size / MIB if self.size >= MIB else 1)
        return done / float(search(r"took ([\d.]+)", out)[0])

    def ornic(self, lab):
        return self.run(lab, "ornic", "rdma", ORNIC)

    def rxe(self, lab):
        return self.run(lab, "rxe", "rdma", VIRTIO)

    def virtio(self, lab):
        return self.run(lab, "virtio", "tcp", VIRTIO)


# pktgen in VM 0 passes frames of 60 bytes to one queue of the interface, as fast as it accepts them.
PKTGEN = """set -e
modprobe pktgen
i={interface}; cd /proc/net/pktgen
echo rem_device_all > kpktgend_0
echo add_device $i > kpktgend_0
for word in "count {count}" "clone_skb 0" "pkt_size 60" "delay 0" "dst {address}" "dst_mac {mac}"; do echo "$word" > $i; done
echo start > pgctrl
grep -A1 Result: $i
echo rem_device_all > kpktgend_0"""
RECEIVED = "sleep {settle}; cat /sys/class/net/{interface}/statistics/rx_packets"


class Packets(Figure):
    """Packets per second of the network interface, as counted by the sender or by the receiver."""

    decimals = 0

    def __init__(self, what, received, count, effort=1):
        super().__init__(what, "pkt/s")
        self.received, self.count = received, max(1000, int(count * effort))

    def run(self, lab, interface, address):
        sender, receiver = lab.vm(0), lab.vm(1)
        mac = receiver.run("cat /sys/class/net/%s/address" % interface).out.strip()
        before = int(receiver.run(RECEIVED.format(settle=0, interface=interface)).out)
        out = sender.run(PKTGEN.format(interface=interface, count=self.count, address=address, mac=mac), timeout=120).out
        microseconds, sent = map(int, search(r"OK: (\d+)\(.*usec, (\d+) \(", out))
        arrived = int(receiver.run(RECEIVED.format(settle=0.5, interface=interface)).out) - before
        if not sent or not arrived:
            raise LabError("%d packets sent, %d received: %s" % (sent, arrived, " ".join(out.split())))
        return (arrived if self.received else sent) / (microseconds / 1e6)

    def ornic(self, lab):
        return self.run(lab, ORNIC_IF, ORNIC)

    def virtio(self, lab):
        return self.run(lab, "eth0", VIRTIO)


def figures(effort=1):
    """Return the rows of the kernel's consumers. effort scales the work of each."""
    return [
        Nvme("NVMe read, 4 KiB, 8 at once", "read", 4096, {"ornic": 1000, "rxe": 200, "virtio": 500}, effort),
        Nvme("NVMe write, 4 KiB, 8 at once", "write", 4096, {"ornic": 1000, "rxe": 200, "virtio": 500}, effort),
        Nvme("NVMe read, 1 MiB (rdma_rw WRITE)", "read", MIB, {"ornic": 64, "rxe": 4, "virtio": 16}, effort),
        Nvme("NVMe write, 1 MiB (rdma_rw READ)", "write", MIB, {"ornic": 64, "rxe": 4, "virtio": 16}, effort),
        Packets("packets sent, 60 B", False, 100000, effort),
        Packets("packets received, 60 B", True, 100000, effort),
    ]
