#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A daemon or a VM that is stopped, the daemon for longer than QEMU waits for a reply (x-msg-timeout, 5 s)."""
import contextlib
import os
import signal
import time
import unittest

import harness
import tap
from lab import Lab
from proxied import LOAD, UNLOAD, UP

STOP = 7                                # seconds, without a driver
LONG = 15                               # seconds, with traffic
CONFIG = "/sys/bus/pci/devices/0000:01:00.0/config"
# The vendor and the device, and 4 bytes of BAR0. QEMU asks the daemon for both.
READS = {"config": "od -An -tx4 -N4 %s" % CONFIG,
         "register": "python3 -c 'import mmap, os; f = os.open(\"%s\", os.O_RDWR | os.O_SYNC); "
                     "print(\"%%08x\" %% memoryview(mmap.mmap(f, 4096)).cast(\"I\")[0])'" % CONFIG.replace("config", "resource0")}
EXCHANGE = "ibv_rc_pingpong -d ornic0 -g 1 -n 40000 -c"
LATE, BACK = "device is late", "device is no longer late"
ALONE = "ibv_rc_pingpong -d ornic0 -g 1 -n 20 -c"


@contextlib.contextmanager
def stopped(pid, seconds):
    """Stop a process, execute the body, and let the process continue after so many seconds."""
    end = time.monotonic() + seconds
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
        time.sleep(max(end - time.monotonic(), 0))
    finally:
        os.kill(pid, signal.SIGCONT)


class Idle(unittest.TestCase):
    """The driver is not loaded while the daemon is stopped."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab.up(1, name="stall-%d" % os.getpid(), guest=harness.GUEST, mem="1G", ornicd=os.path.join(harness.BUILT, "ornicd"),
                         modules=harness.PAYLOAD, provider=harness.PAYLOAD)
        cls.addClassCleanup(cls.lab.down)
        cls.vm = cls.lab.vms[0]
        cls.vm.patience = harness.SLOW
        cls.vm.run(UNLOAD)
        cls.vm.run("echo 1 > %s" % CONFIG.replace("config", "enable"))      # Memory Space Enable, for reads of BAR0

    def read(self, what):
        return self.vm.run(READS[what], timeout=60).out.strip()

    def gives_up(self, what):
        """Stop the daemon while the VM reads. QEMU gives up, and the reply comes when nobody waits for it."""
        before = self.read(what)
        with stopped(self.lab.daemon_pids()[0], STOP):
            program = self.vm.spawn(READS[what])
        self.assertEqual(program.wait(60), 0, program.text())
        self.assertEqual(program.text().strip(), "ffffffff", "QEMU did not give up: the test proves nothing")
        for _ in range(3):
            self.assertEqual(self.read(what), before)

    def test_read_of_config(self):
        self.gives_up("config")

    def test_read_of_register(self):
        self.gives_up("register")

    def test_works(self):
        """Runs last. The device is usable after the stops."""
        self.vm.run("%s && %s" % (LOAD, UP % 1), timeout=60)
        self.vm.run("{ %s & } ; until ss -Hltn 'sport = :18515' | grep -q .; do sleep 0.1; done; %s 10.88.0.1" % (ALONE, ALONE),
                    timeout=60)


class Busy(unittest.TestCase):
    """Everything continues (ORN-CTL-38), also if a VM reads configuration space meanwhile, and the late reply comes."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab.up(2, name="busy-%d" % os.getpid(), guest=harness.GUEST, ornicd=os.path.join(harness.BUILT, "ornicd"),
                         modules=harness.PAYLOAD, provider=harness.PAYLOAD)
        cls.addClassCleanup(cls.lab.down)
        cls.here, cls.there = cls.lab.vms
        for vm in cls.lab.vms:
            vm.patience = harness.SLOW

    def setUp(self):
        self.here.run("dmesg -C")
        # During a stop run an exchange of messages whose contents are checked, and a stream over the network interface.
        self.programs = [self.there.spawn(EXCHANGE), self.there.spawn("iperf3 -s -1")]
        for port in 18515, 5201:
            self.there.wait_listen(port)
        self.programs += [self.here.spawn("%s 10.88.0.2" % EXCHANGE), self.here.spawn("iperf3 -c 10.88.0.2 -t 10")]
        time.sleep(2)

    def finished(self):
        for program in self.programs:
            self.assertEqual(program.wait(120), 0, program.text())

    def late(self):
        """Return how often the device was late. It is not late any more. A loaded host may have made it late once more."""
        said = self.here.dmesg()
        self.assertEqual(said.count(LATE), said.count(BACK), said)
        return said.count(LATE)

    def test_daemon(self):
        """A command of the driver is in flight, too."""
        with stopped(self.lab.daemon_pids()[0], LONG):
            time.sleep(1)
            self.programs.append(self.here.spawn(READS["config"]))
            self.programs.append(self.here.spawn("ibv_rc_pingpong -d ornic0 -g 1 -p 18516 & sleep 1; kill $!"))
        self.finished()
        self.assertGreaterEqual(self.late(), 1)

    def test_vm(self):
        """The other VM is stopped: its device receives."""
        with stopped(self.lab.state.data["vms"][1]["process"][0], LONG):
            pass
        self.finished()
        self.late()


if __name__ == "__main__":
    tap.main()
