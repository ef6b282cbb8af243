# SPDX-License-Identifier: GPL-2.0
"""Figures of ornic and of its competitors, measured between the two VMs of a lab in one run."""
import re
import statistics

from .errors import LabError
from .progress import Step

ORNIC = "10.88.0.2"             # VM 1's addresses
VIRTIO = "10.77.0.2"
PERFTEST_PORT = 18515
PERFTEST_MINIMUM = 5            # perftest rejects fewer iterations
COLUMNS = {"ornic": "ornic", "rxe": "Soft-RoCE", "virtio": "virtio-net"}


def against(lab, server, client, port, timeout=300):
    """Run server in VM 1 and client in VM 0; return the client's output."""
    waiting = lab.vm(1).spawn(server, timeout=timeout)
    try:
        lab.vm(1).wait_listen(port)
        out = lab.vm(0).run(client, timeout=timeout).out
        waiting.wait(timeout)
    finally:
        waiting.kill()          # the next row needs the port
    return out


def perftest(lab, device, address, program, options):
    """Return the figures of perftest's last line."""
    command = "%s -d %s -F -p %d %s" % (program, device, PERFTEST_PORT, options)
    out = against(lab, command, "%s %s" % (command, address), PERFTEST_PORT)
    try:
        return last_row(out)
    except ValueError:
        raise LabError("%s printed no figures: %s" % (program, out.strip()[-300:])) from None


def last_row(text):
    """Return the numbers of the last row of a table of perftest's, in its order; raise ValueError if there is none.

    The peak is "inf" if two messages completed within one reading of the clock: it keeps its place.
    """
    rows = [line.split() for line in text.splitlines() if re.match(r"^\s*\d+\s+\d+\s+([\d.]|inf)", line)]
    if not rows or len(rows[-1]) < 5:
        raise ValueError("no row")
    return [float(figure) for figure in rows[-1]]


def search(pattern, text):
    """Return the groups of a match in a program's output; raise LabError if there is none."""
    found = re.search(pattern, text)
    if not found:
        raise LabError("no figure in: %s" % (text.strip()[-200:] or "no output"))
    return found.groups()


def tcp_bandwidth(lab, address, seconds):
    """Measure one TCP stream in MiB/s."""
    out = against(lab, "iperf3 -s -1", "iperf3 -c %s -t %d -f M" % (address, seconds), 5201)
    return float(search(r"([\d.]+) MBytes/sec.*receiver", out)[0])


def tcp_latency(lab, address, seconds):
    """Measure the one-way time of a small TCP message in us."""
    out = against(lab, "timeout 60 qperf", "qperf -t %d %s tcp_lat; qperf %s quit || :" % (seconds, address, address), 19765)
    value, unit = search(r"latency\s*=\s*([\d.]+) (us|ms)", out)
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
    """A row of the table. Subclasses measure each column by a method of its name that takes a lab.

    values has a number for each column that was measured, failures the reason for each that could not be.
    """

    decimals = 1

    def __init__(self, what, unit, less_is_better=False):
        self.what, self.unit, self.less_is_better = what, unit, less_is_better
        self.values, self.failures = {}, {}

    def columns(self):
        """Return the columns of this row."""
        return [name for name in COLUMNS if hasattr(self, name)]

    def complete(self):
        return all(name in self.values for name in self.columns())

    def shared(self, _column):
        """Return a text; rows with the same text share one figure in the column, which is measured once; None: a separate figure."""
        return None

    def cell(self, column):
        if column in self.values:
            return "%.*f %s" % (self.decimals, self.values[column], self.unit)
        return "failed" if column in self.failures else "-"

    def ratio(self, column):
        """Return as text by which factor ornic is better than the column."""
        ornic, other = self.values.get("ornic"), self.values.get(column)
        if not ornic or not other:
            return "-"
        return "%.1fx" % (other / ornic if self.less_is_better else ornic / other)


class Verbs(Figure):
    """A program of perftest; next to it one TCP message or stream, which does not depend on the row."""

    def __init__(self, what, program, size, ornic, rxe, more="", effort=1):
        is_latency = program.endswith("_lat")
        super().__init__(what, "us" if is_latency else "MiB/s", is_latency)
        self.program, self.size, self.more, self.effort = program, size, more, effort
        self.iterations = {"ornic": ornic, "rxe": rxe}

    def run(self, lab, column, device, address):
        n = max(PERFTEST_MINIMUM, int(self.iterations[column] * self.effort))
        figures = perftest(lab, device, address, self.program, "-s %d -n %d %s" % (self.size, n, self.more))
        return figures[4 if self.less_is_better else 3]     # typical one-way time, average bandwidth

    def ornic(self, lab):
        return self.run(lab, "ornic", "ornic0", ORNIC)

    def rxe(self, lab):
        return self.run(lab, "rxe", "rxe0", VIRTIO)

    def virtio(self, lab):
        return (tcp_latency if self.less_is_better else tcp_bandwidth)(lab, VIRTIO, max(1, int(3 * self.effort)))

    def shared(self, column):
        return "tcp " + self.unit if column == "virtio" else None


def one_line(error):
    return " ".join(str(error).split())[:300]


def median(runs, what, measure):
    with Step(what) as step:
        values = []
        for i in range(runs):
            step.note("run %d of %d" % (i + 1, runs))
            values.append(measure())
    return statistics.median(values)


def measure_column(lab, figures, column, runs):
    """Fill in a column. A row that cannot be measured keeps the reason; the rows after it are measured."""
    rows = [figure for figure in figures if column in figure.columns()]
    for i, figure in enumerate(rows):
        key = figure.shared(column)
        twin = next((f for f in rows[:i] if key and f.shared(column) == key), None)
        if twin:
            for known, mine in (twin.values, figure.values), (twin.failures, figure.failures):
                mine.update({column: known[column]} if column in known else {})
            continue
        try:
            figure.values[column] = median(runs, "%s %d/%d: %s" % (COLUMNS[column], i + 1, len(rows), figure.what),
                                           lambda figure=figure: getattr(figure, column)(lab))
        except LabError as e:
            figure.failures[column] = one_line(e)


def compare(lab, figures, runs):
    """Measure all figures on ornic, rxe and virtio-net; fill in their values and failures."""
    measure_column(lab, figures, "ornic", runs)
    try:
        with SoftRoce(lab):
            measure_column(lab, figures, "rxe", runs)
    except LabError as e:
        for figure in figures:
            if "rxe" in figure.columns() and "rxe" not in figure.values:
                figure.failures.setdefault("rxe", one_line(e))
    measure_column(lab, figures, "virtio", runs)


def table(figures, accel, runs):
    """Return the comparison as text, with the reasons of failures below it."""
    lines = ["VM to VM on this machine, %s, %s" % ("KVM" if accel == "kvm" else "QEMU's TCG (no KVM)",
                                                  "one run" if runs == 1 else "medians of %d runs" % runs)]
    lines.append("%-36s %15s %15s %15s %9s %9s" % ("", *COLUMNS.values(), "to rxe", "to virtio"))
    for f in figures:
        lines.append("%-36s %15s %15s %15s %9s %9s" % (f.what, *map(f.cell, COLUMNS), f.ratio("rxe"), f.ratio("virtio")))
    lines += ["failed: %s, %s: %s" % (f.what, COLUMNS[column], why) for f in figures for column, why in f.failures.items()]
    lines.append('Soft-RoCE runs over virtio-net, which runs over a QEMU stream socket. "to": how many times better ornic is.')
    lines.append("virtio-net beside RDMA is TCP: one small message there and back, halved, or one stream, whatever the row.")
    return "\n".join(lines)


MIB = 1 << 20
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
    # Soft-RoCE needs seconds for what 16 queue pairs send at once: with perftest's timeout (-u 14, 67 ms) its retries run out.
    ("RDMA write, 1 MiB, 16 QPs", "ib_write_bw", MIB, 200, PERFTEST_MINIMUM, "-q 16 -u 18"),
)


def verbs(rows, effort=1):
    """Return the figures of perftest. effort scales the work of each."""
    return [Verbs(*row, effort=effort) for row in rows]
