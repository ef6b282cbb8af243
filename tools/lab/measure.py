# SPDX-License-Identifier: GPL-2.0
"""Figures of ornic and of its peers, measured between the two VMs of a lab in one run."""
import re
import statistics

from .errors import LabError
from .progress import Step

ORNIC = "10.88.0.2"             # VM 1's addresses
VIRTIO = "10.77.0.2"
PERFTEST_PORT = 18515
MIB = 1 << 20


def against(lab, server, client, port, timeout=300):
    """Server in VM 1, client in VM 0; returns what the client printed."""
    waiting = lab.vm(1).spawn(server, timeout=timeout)
    lab.vm(1).wait_listen(port)
    out = lab.vm(0).run(client, timeout=timeout).out
    waiting.wait(timeout)
    return out


def perftest(lab, device, address, program, options):
    """The figures of perftest's last line."""
    command = "%s -d %s -F -p %d %s" % (program, device, PERFTEST_PORT, options)
    out = against(lab, command, "%s %s" % (command, address), PERFTEST_PORT)
    rows = [line.split() for line in out.splitlines() if re.match(r"^\s*\d+\s+\d+\s+[\d.]", line)]
    if not rows:
        raise LabError("%s printed no figures: %s" % (program, out.strip()[-300:]))
    return [float(x) for x in rows[-1] if re.match(r"^[\d.]+$", x)]


def latency(lab, device, address, program, size, iterations):
    """Typical one-way time (round trip for a read), us."""
    return perftest(lab, device, address, program, "-s %d -n %d" % (size, iterations))[4]


def bandwidth(lab, device, address, program, size, iterations, more=""):
    """Average MiB/s."""
    return perftest(lab, device, address, program, "-s %d -n %d %s" % (size, iterations, more))[3]


def tcp_bandwidth(lab, address):
    """MiB/s of one TCP stream."""
    out = against(lab, "iperf3 -s -1", "iperf3 -c %s -t 3 -f M" % address, 5201)
    return float(re.search(r"([\d.]+) MBytes/sec.*receiver", out).group(1))


def tcp_latency(lab, address):
    """One-way time of a small TCP message, us."""
    waiting = lab.vm(1).spawn("timeout 60 qperf")
    lab.vm(1).wait_listen(19765)
    out = lab.vm(0).run("qperf -t 2 %s tcp_lat; qperf %s quit" % (address, address), timeout=90, check=False).out
    waiting.wait(90)
    value, unit = re.search(r"latency\s*=\s*([\d.]+) (us|ms)", out).groups()
    return float(value) * (1000 if unit == "ms" else 1)


class SoftRoce:
    """rxe over virtio-net, for as long as the context lasts."""

    def __init__(self, lab):
        self.lab = lab

    def __enter__(self):
        for vm in self.lab.vms:
            vm.run("modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0")

    def __exit__(self, *_):
        for vm in self.lab.vms:
            vm.run("rdma link delete rxe0", check=False)


class Figure:
    """One row: what it is called, its unit, whether more is better, how it is measured and with how many iterations."""

    def __init__(self, what, program, size, ornic, rxe, more=""):
        self.what = what
        self.is_latency = program.endswith("_lat")
        self.program, self.size, self.iterations, self.more = program, size, {"ornic0": ornic, "rxe0": rxe}, more
        self.values = {}

    def unit(self):
        return "us" if self.is_latency else "MiB/s"

    def measure(self, lab, device, address):
        n = self.iterations[device]
        if self.is_latency:
            return latency(lab, device, address, self.program, self.size, n)
        return bandwidth(lab, device, address, self.program, self.size, n, self.more)

    def ratio(self, peer):
        """How many times better ornic is."""
        ornic, other = self.values["ornic"], self.values[peer]
        return other / ornic if self.is_latency else ornic / other


SHORT = (
    ("RDMA write, 2 B, one way", "ib_write_lat", 2, 2000, 200),
    ("RDMA write, 1 MiB", "ib_write_bw", MIB, 2000, 20),
    ("RDMA read, 1 MiB", "ib_read_bw", MIB, 2000, 20),
)
LONG = SHORT + (
    ("RDMA read, 2 B, there and back", "ib_read_lat", 2, 2000, 200),
    ("send, 2 B, one way", "ib_send_lat", 2, 2000, 200),
    ("RDMA write, 64 B", "ib_write_bw", 64, 20000, 500),
    ("RDMA write, 4 KiB", "ib_write_bw", 4096, 20000, 500),
    ("RDMA write, 64 KiB", "ib_write_bw", 65536, 5000, 100),
    ("send, 1 MiB", "ib_send_bw", MIB, 1000, 20),
    ("RDMA write, 1 MiB, 16 QPs", "ib_write_bw", MIB, 200, 2, "-q 16"),
)


def median(runs, what, measure):
    with Step(what) as step:
        values = []
        for i in range(runs):
            step.note("run %d of %d" % (i + 1, runs))
            values.append(measure())
    return statistics.median(values)


def compare(lab, rows, runs):
    """Measures all rows on ornic, rxe and TCP; returns Figures with values filled in."""
    figures = [Figure(*row) for row in rows]
    for f in figures:
        f.values["ornic"] = median(runs, "ornic: " + f.what, lambda f=f: f.measure(lab, "ornic0", ORNIC))
    with SoftRoce(lab):
        for f in figures:
            f.values["rxe"] = median(runs, "rxe: " + f.what, lambda f=f: f.measure(lab, "rxe0", VIRTIO))
    slow = median(runs, "TCP: latency", lambda: tcp_latency(lab, VIRTIO))
    stream = median(runs, "TCP: one stream", lambda: tcp_bandwidth(lab, VIRTIO))
    for f in figures:
        f.values["tcp"] = slow if f.is_latency else stream
    return figures


def table(figures, accel, runs):
    """The comparison as text."""
    lines = ["VM to VM on this machine, %s, %s" % ("KVM" if accel == "kvm" else "QEMU's TCG (no KVM)",
                                                  "one run" if runs == 1 else "medians of %d runs" % runs)]
    lines.append("%-32s %14s %14s %14s %9s %9s" % ("", "ornic", "Soft-RoCE", "TCP", "to rxe", "to TCP"))
    for f in figures:
        cells = ["%.1f %s" % (f.values[peer], f.unit()) for peer in ("ornic", "rxe", "tcp")]
        lines.append("%-32s %14s %14s %14s %8.1fx %8.1fx" % (f.what, *cells, f.ratio("rxe"), f.ratio("tcp")))
    lines.append('Soft-RoCE and TCP run over virtio-net on a QEMU stream socket. "to": how many times better ornic is.')
    lines.append("TCP is one small message there and back, halved, or one stream, whatever the row.")
    return "\n".join(lines)
