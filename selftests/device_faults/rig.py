# SPDX-License-Identifier: GPL-2.0
"""A VM whose device is behind a proxy, rounds of workloads with injected faults, and the checks.

In a round all workloads run at once. Periods without faults, in which the workloads make progress, alternate with periods with
faults. At the end of a round the programs are killed, the drivers are unloaded although the kernel's consumers still use them, and
loaded again for a device without faults. The checks: the VM is alive, no kernel complains, nothing takes longer than the limits
below, the drivers work afterwards, and on a debug kernel no memory leaks.
"""
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
for folder in ("guest", "proxy"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))

import harness                              # noqa: E402
import workloads as work                    # noqa: E402
from faults import Liar                     # noqa: E402
from interface import c                     # noqa: E402
from lab import Lab, LabError               # noqa: E402
from proxied import UNLOAD, UP              # noqa: E402
from proxy import Lies, Proxy               # noqa: E402
from relay import Relay                     # noqa: E402

ADMIN_TIMEOUT = 3                           # seconds, as the device reports it. The driver waits four times as long if there is a heartbeat
CALM, FAULTY = (10, 30) if not harness.DEBUG else (60, 60)      # seconds of a period without faults, and of one with faults
TIMES = 6                                   # periods of each kind per round
PAUSE = 0.5 if not harness.DEBUG else 0.8   # mean seconds between two faulty commands
LIMIT = 180                                 # seconds for a workload to end, and for unloading: several commands may time out
LEAK_LOOK = 900                             # seconds between two scans for leaks
# The functions are bound in a fixed order, because the order decides the names of the RDMA devices. By itself, a function that was
# removed and found again comes last.
LOAD = """a=/sys/bus/pci/drivers_autoprobe; echo 0 > $a; insmod {updates}/ornic.ko; status=$?; echo 1 > $a; [ $status = 0 ] &&
echo {slot} > {pci}/bind && echo {other} > {pci}/bind && insmod {updates}/ornic_ib.ko""".format(
    updates=work.UPDATES, slot=work.SLOT, other=work.OTHER, pci=work.PCI)
WORKS = "{ timeout 60 %s >/dev/null 2>&1 & } ; until ss -Hltn 'sport = :18515' | grep -q .; do sleep 0.1; done; %s 10.88.0.1" % (
    work.ALONE, work.ALONE)
# Allocations and user copies fail if a function of one of the drivers is among the callers. Look up its text addresses after each load,
# because they change. Allocations of dma-debug itself do not fail, because it reports nothing after such a failure.
FAIL = """cd /sys/kernel/debug
text() {{ grep -iE " t ($1)" /proc/kallsyms | grep -v cold | grep "$2" | sort | sed -n '1p;$p' | cut -d' ' -f1; }}
set -- $(text . '\\[{module}\\]$') $(text debug_dma_ .)
for f in failslab fail_page_alloc fail_usercopy; do
    echo 0 > $f/verbose; echo 10 > $f/stacktrace-depth; echo 0x$1 > $f/require-start; echo 0x$2 > $f/require-end
    echo 0x$3 > $f/reject-start; echo 0x$4 > $f/reject-end; echo {times} > $f/times; echo {interval} > $f/interval
    for o in ignore-gfp-wait ignore-gfp-highmem cache-filter; do [ ! -e $f/$o ] || echo N > $f/$o; done
    [ ! -e $f/min-order ] || echo 0 > $f/min-order
    echo 100 > $f/probability
done"""
NO_FAIL = "cd /sys/kernel/debug; for f in failslab fail_page_alloc fail_usercopy; do echo 0 > $f/probability; cat $f/times; done"
FAILURES = 1000000                          # most failures of each kind in one period; the kernel counts down from there
STUCK = """for k in l w; do echo $k > /proc/sysrq-trigger; done
ps ax -o pid,stat,wchan:30,args; cd /tmp/work; for f in *.log; do echo == $f; tail -n 3 $f; done"""


# Warnings of the kernel itself (6.12, 7.2): the function and the reason.
KERNELS_WARNINGS = {
    "rdma_resolve_addr": "cma_bind_addr() binds an id to a device, whose removal changes the id's state before it is checked",
    "resolve_prepare_src": "the same if the compiler does not inline it",
    "get_pat_info": "remap_pfn_range() unmaps a range for which it could not allocate a page table (6.12, with a BAR of any device, too)",
}


# Faults of the kernel itself that end the VM (6.12, 7.2): the function that the processor was in and the reason.
KERNELS_OOPSES = {
    "cma_cancel_operation": "the removal of a device cancels an id's route query without its mutex; whoever destroys the id meanwhile "
                            "has cleared its device (6.12, with Soft-RoCE, too)",
}
OOPS = re.compile(r"(?:BUG: |Oops: |general protection fault).*?\bRIP: \w+:(\w+)", re.S)


# The kernel's report of a failed allocation: each one is injected, and most give no report.
NO_MEMORY = re.compile(r"(vmalloc error: size|page allocation failure: order)[^\n]*\n"
                       r"(?:(?![^\n]*(?:Call Trace:|BUG|WARNING: |KASAN))[^\n]*\n){0,8}?[^\n]*Call Trace:")


def expected(text):
    """Return the text of a console without the reports of failed allocations."""
    return NO_MEMORY.sub("", text)


class Finding(Exception):
    """A failed check."""


class Rig:
    """Run the workloads in a VM, and in a new VM after each finding."""

    def __init__(self, name, plan, without=()):
        self.name, self.plan, self.lab = name, plan, None
        self.works = {name: script for name, script in work.WORKLOADS.items() if name not in without}
        self.random = plan.random
        self.failed = 0                 # allocations and user copies
        self.liar, self.missing = None, False

    def start(self):
        """Start the VM. No fault is injected yet, so a failure here is not caused by one."""
        proxies = []

        def between(front, path):
            proxies.append(Relay(front, path) if proxies else Proxy(front, path))
        self.lab = Lab.up(1, name=self.name, guest=harness.GUEST, devices="2", mem=harness.MEMORY,
                          ornicd=os.path.join(harness.BUILT, "ornicd"), modules=harness.PAYLOAD, provider=harness.PAYLOAD, proxy=between)
        self.proxy, self.vm = proxies[0], self.lab.vms[0]
        self.vm.patience = harness.SLOW
        self.vm.push(harness.PROGRAMS, "/tmp/selftests")
        self.heard = harness.complaints(self.vm, expected)
        self.looked = time.monotonic()
        # A debug kernel is slow: a task may wait as long as a step may take, not only 120 s.
        self.vm.run("echo %d > /proc/sys/kernel/hung_task_timeout_secs" % (LIMIT * harness.SLOW), check=harness.DEBUG)
        if harness.DEBUG:
            self.vm.run("insmod /tmp/selftests/ornic_nofail.ko")
        done = self.shell(work.SETUP, "setting up the workloads", LIMIT)
        if done.rc:
            raise LabError("the workloads cannot be set up: " + done.err.strip()[-300:])
        for name, script in self.works.items():
            self.vm.run("cat > /tmp/work/" + name, stdin=(work.COMMON + script).encode())
        if self.plan.only_starts():
            self.vm.run("touch " + work.OFTEN)
        self.again()

    def stop(self):
        lab, self.lab = self.lab, None
        if lab:
            lab.down()

    def shell(self, script, what, timeout=LIMIT):
        """Run a script that must end; return its Result."""
        try:
            done = self.vm.run(script, timeout=timeout, check=False)
        except LabError as e:
            raise Finding("%s: %s" % (what, e)) from None
        if done.rc == 124:
            raise Finding("%s takes more than %d s" % (what, timeout * harness.SLOW))
        return done

    def truth(self):
        """Remove all faults from the device."""
        self.proxy.release()
        self.proxy.lies = Lies(registers={c.ORNIC_REG_CAP: self.cap})

    @staticmethod
    def cap(value):
        return value & ~(c.ORNIC_CAP_TIMEOUT_MASK << c.ORNIC_CAP_ADMIN_TIMEOUT_SHIFT) | \
            10 * ADMIN_TIMEOUT << c.ORNIC_CAP_ADMIN_TIMEOUT_SHIFT

    def failing(self, on):
        """On a debug kernel: make memory allocations and user copies of one of the drivers fail, or stop that and count them."""
        if not harness.DEBUG:
            return
        script = FAIL.format(module=self.random.choice(("ornic", "ornic_ib")), times=FAILURES,
                             interval=self.random.choice((30, 80, 200))) if on else NO_FAIL
        done = self.shell(script, "setting up allocation failures")
        if done.rc:
            raise Finding("allocation failures cannot be set up: " + done.err.strip()[-300:])
        if not on:
            self.failed += sum(FAILURES - int(left) for left in done.out.split())

    def round(self):
        """Run the workloads with faults, and check. Return how often each workload succeeded."""
        running = self.vm.spawn("\n".join("{ %s; } &" % work.LOOP.format(name=name) for name in self.works) + "\nwait")
        self.liar, self.missing = None, False
        for _ in range(TIMES):
            self.shell(work.REVIVE, "binding a function without a working device again")
            self.shell("touch " + work.SAFE, "allowing NVMe connections")
            self.pass_time(CALM)
            self.shell("rm %s; flock %s true" % (work.SAFE, work.LOCK), "waiting for an NVMe connection")
            self.liar = liar = Liar(self.proxy, self.plan, ADMIN_TIMEOUT, PAUSE)
            self.failing(True)
            self.pass_time(FAULTY)
            self.failing(False)
            liar.end()
            self.missing |= liar.missing
            self.pass_time(4 * ADMIN_TIMEOUT + 2 if liar.lost else 0)
        self.end(running)
        self.judge()
        rounds = {name: int(self.shell("cat /tmp/work/%s.rounds || echo 0" % name, "reading how often a workload succeeded").out or 0)
                  for name in self.works}
        self.again()
        self.judge()
        return rounds

    def pass_time(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(1)
            self.judge()

    def end(self, running):
        """End the workloads. If an event was lost, reset the device, because a workload may wait for the event until then."""
        self.shell(work.KILL, "killing programs")
        if self.missing:
            self.shell("echo 1 > /sys/bus/pci/devices/%s/reset || true" % work.SLOT, "resetting the device")
        try:
            running.wait(LIMIT * harness.SLOW)
        except LabError:
            left = self.shell("ps ax -o stat,args | grep '^D'", "listing processes").out
            raise Finding("%d s after the kill, workloads still run: %s" % (LIMIT * harness.SLOW, "; ".join(left.splitlines()))) from None

    def again(self):
        """Unload the drivers, and load them for a device without faults. The other interface leaves its namespace."""
        unload = self.shell("{ %s; } 2>&1" % UNLOAD, "unloading the drivers")
        if unload.rc:
            raise Finding("the drivers cannot be unloaded: " + unload.out.strip()[-300:])
        self.truth()
        with self.proxy.lock:
            self.proxy.accesses.clear()
            self.proxy.commands.clear()
        self.shell(work.CLEAN, "cleaning up after the workloads")
        done = self.shell("rm -f %s /tmp/work/*.rounds; { %s; } && { %s; } && { %s; } 2>&1" % (work.STOP, LOAD, UP % 1, WORKS),
                          "loading the drivers again")
        if done.rc:
            buses = self.shell("ls -l /sys/bus/pci/drivers/ornic /sys/bus/auxiliary/devices; lspci -nnkvv", "listing devices").out
            raise Finding("the drivers do not work after they were loaded again: %s\n%s" % ((done.out + done.err).strip()[-300:], buses))
        if harness.DEBUG and time.monotonic() - self.looked > LEAK_LOOK:
            self.leaks()

    def leaks(self):
        """Check for memory leaks by kmemleak; leaks of the kernel itself do not count."""
        found = [text for text in self.vm.kmemleak() if not any("    %s+0x" % name in text for name in harness.KERNELS_OWN)]
        self.looked = time.monotonic()
        if found:
            raise Finding("memory leaks:\n" + "\n".join(found[:5]))

    def wanted(self, complaint):
        """Return whether a complaint is expected: the watchdog must report a stalled send queue if a completion event was lost."""
        missing = self.missing or self.liar and self.liar.missing
        return missing and "NETDEV WATCHDOG" in complaint

    def forgive(self, said):
        """Return the complaints without the kernel's own warnings and the trace that comes with them."""
        own = {complaint for complaint in said if complaint.startswith("WARNING: ") and
               any(re.search(r"\b%s(\.\w+)*\+0x" % name, complaint) for name in KERNELS_WARNINGS)}
        if own:
            own.add("Call Trace:")
            self.heard |= own
        return said - own

    def kernels_own(self):
        """Return the reason if the first fault that ended a thread of the VM's kernel is the kernel's own; a finding then follows from it."""
        first = OOPS.search(self.vm.console())
        return KERNELS_OOPSES.get(first[1]) if first else None

    def judge(self):
        if not self.vm.alive():
            raise Finding("the VM is dead")
        said = self.forgive({complaint for complaint in harness.complaints(self.vm, expected) - self.heard if not self.wanted(complaint)})
        if said:
            raise Finding("kernel: " + "; ".join(sorted(said)[:4]))
        if not self.lab.daemons_alive():
            raise Finding("ornicd is dead")
        if self.proxy.broken:
            raise Finding("the proxy failed: %r" % self.proxy.broken)
        broken, self.proxy.rules.broken = self.proxy.rules.broken, []
        if broken:
            raise Finding("the driver breaks %s" % "; ".join(sorted(set(broken))[:4]))

    def explain(self):
        """Return the last faults, the state of the VM's processes, and the kernel's log."""
        now = time.monotonic()
        text = "".join("%.1f s before: %s\n" % (now - when, name) for when, name in self.plan.latest[-60:])
        try:
            said = self.vm.dmesg()      # STUCK can push the complaint out of the kernel's log
            text += self.vm.run(STUCK, timeout=60, check=False).out
            return text + said + "== meanwhile\n" + self.vm.dmesg()[-100000:]
        except LabError:
            return text + self.vm.console()
