#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A daemon that is stopped for longer than QEMU waits for a reply (x-msg-timeout, 5 s). The driver is not loaded meanwhile."""
import os
import signal
import time
import unittest

import harness
import tap
from lab import Lab
from proxied import LOAD, UNLOAD, UP

STOP = 7                                # seconds
CONFIG = "/sys/bus/pci/devices/0000:01:00.0/config"
# The vendor and the device, and 4 bytes of BAR0. QEMU asks the daemon for both.
READS = {"config": "od -An -tx4 -N4 %s" % CONFIG,
         "register": "python3 -c 'import mmap, os; f = os.open(\"%s\", os.O_RDWR | os.O_SYNC); "
                     "print(\"%%08x\" %% memoryview(mmap.mmap(f, 4096)).cast(\"I\")[0])'" % CONFIG.replace("config", "resource0")}
ALONE = "ibv_rc_pingpong -d ornic0 -g 1 -n 20 -c"


class Stall(unittest.TestCase):
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

    def stopped(self, what):
        """Stop the daemon while the VM reads. QEMU gives up, and the reply comes when nobody waits for it."""
        pid = self.lab.daemon_pids()[0]
        before = self.read(what)
        os.kill(pid, signal.SIGSTOP)
        try:
            program = self.vm.spawn(READS[what])
            time.sleep(STOP)
        finally:
            os.kill(pid, signal.SIGCONT)
        self.assertEqual(program.wait(60), 0, program.text())
        self.assertEqual(program.text().strip(), "ffffffff", "QEMU did not give up: the test proves nothing")
        for _ in range(3):
            self.assertEqual(self.read(what), before)

    def test_read_of_config(self):
        self.stopped("config")

    def test_read_of_register(self):
        self.stopped("register")

    def test_works(self):
        """Runs last. The device is usable after the stops."""
        self.vm.run("%s && %s" % (LOAD, UP % 1), timeout=60)
        self.vm.run("{ %s & } ; until ss -Hltn 'sport = :18515' | grep -q .; do sleep 0.1; done; %s 10.88.0.1" % (ALONE, ALONE),
                    timeout=60)


if __name__ == "__main__":
    tap.main()
