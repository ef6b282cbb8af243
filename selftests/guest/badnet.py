# SPDX-License-Identifier: GPL-2.0
"""Bad and slow networks between the VMs: fault injection rules of ornicd, and captures of the traffic for the checker to judge.

The lab's daemon must have a control socket: ORNICD_ARGS. With several daemons, rules and captures apply to the first one.
"""
import contextlib
import os
import shutil
import time

import harness                  # sets the path of the other modules
import programs

from checker import judge       # pylint: disable=wrong-import-order
from control import Client      # pylint: disable=wrong-import-order

ORNICD_ARGS = ["--control", "{run}/control{i}"]
NETWORKS = dict(
    loss_01=["drop p=0.1%"],
    loss_1=["drop p=1%"],
    loss_5=["drop p=5%"],
    reorder_1=["reorder p=1% by=3"],
    duplicate_1=["duplicate p=1%"],
    corrupt_1=["corrupt p=1%"],
    all=["drop p=1%", "reorder p=1% by=3", "duplicate p=1%", "corrupt p=1%"],
)
TIMEOUT_NS = 4096 << 17         # the programs' local ACK timeout
PATIENCE = 300


class Captured(harness.GuestTest):
    """A test case with access to the daemon's control socket."""

    # Senders whose packets are judged. Times are taken at the capture, so a VM with another daemon is not judged.
    judged = ("10.88.0.1", "10.88.0.2") if harness.HOSTS == "one" else ("10.88.0.1",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.control = Client(cls.p.lab.state.path("control0"))
        cls.addClassCleanup(cls.control.close)

    @contextlib.contextmanager
    def captured(self, options, least=1000):
        """Check that packets of the switch break no rule of IBTA and hold more than this number of requests. Yield the
        checker's counts."""
        path = self.p.lab.state.path("captured.pcapng")
        counts = {}
        number = self.control.call("capture.start", spec=path + ",buffer=256M")["id"]
        self.addCleanup(os.remove, path)
        try:
            yield counts
        finally:
            self.control.call("capture.stop", id=number)
        counts.update(self.verdict(number, path, options))
        self.assertGreater(counts.get("requests", 0), least, counts)

    def verdict(self, number, path, options):
        """Judge the complete file with the checker; return its counts."""
        self.wait_written(number)
        report = judge.judge(path, options)
        print("# " + ", ".join("%d %s" % (n, what) for what, n in sorted(report.counts.items())))
        wrong = [str(v) for v in report.violations if v.who in self.judged]
        if wrong:
            kept = os.path.join(harness.BUILT, "%s.pcapng" % self.id())
            shutil.copyfile(path, kept)
            self.fail("%d violations; the capture is kept as %s:\n%s" % (len(wrong), kept, "\n".join(wrong[:20])))
        return report.counts

    def wait_written(self, number):
        """Wait until a stopped capture is complete."""
        end = time.monotonic() + PATIENCE
        while any(each["id"] == number for each in self.control.call("capture.list")):
            self.assertLess(time.monotonic(), end, "the capture is not written after %d s" % PATIENCE)
            time.sleep(0.05)

    @contextlib.contextmanager
    def network(self, rules, timeout_ns):
        """Check that no rule of IBTA is broken under these fault rules, each of which must act."""
        self.addCleanup(self.control.call, "fault.clear")
        for rule in rules:
            self.control.call("fault.add", rule=rule)
        with self.captured(judge.Options(timeout_ns=timeout_ns)):
            yield
        acted = {rule["rule"]: rule["acted"] for rule in self.control.call("fault.list")}
        for rule, times in acted.items():
            self.assertGreater(times, 0, "nothing was done: %s: %s" % (rule, acted))


class BadNetwork(Captured, programs.ProgramTest):
    """A file's test case; networks() adds its methods."""

    program = "verbs_data"
    port = 7471
    operations = "send send_imm write write_imm read cmp_swap fetch_add qps_fetch_add"
    newer = None                # name and port of a program with more operations, and their names

    def check(self, place, rules):
        """Check that each operation succeeds with the right data in the right order, and that atomics execute once."""
        runs = [(self.operations, None)] + ([(self.newer[2], self.newer[:2])] if self.newer else [])
        with self.network(rules, TIMEOUT_NS):
            said = [self.ask(place, "", names, timeout=PATIENCE, other=other) for names, other in runs]
        for (names, _), text in zip(runs, said):
            for name in names.split():
                self.judge(text, name)


def networks(case, places, names=tuple(NETWORKS)):
    """Add a test method for each place and network."""
    for place in places:
        for name in names:
            def test(self, place=place, rules=NETWORKS[name]):
                self.check(place, rules)
            setattr(case, "test_%s_%s" % (place, name), test)
