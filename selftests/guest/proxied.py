# SPDX-License-Identifier: GPL-2.0
"""A lab whose devices stand behind proxies (selftests/proxy). A proxy observes the driver and can falsify the device's answers."""
import atexit
import os
import sys
import unittest

import harness

sys.path.insert(0, os.path.join(harness.TOP, "selftests", "proxy"))

import tap                              # noqa: E402
from interface import c, pack, unpack   # noqa: E402
from lab import Lab                     # noqa: E402
from proxy import CONFIG, READ, WRITE, Lies, Proxy     # noqa: E402
from rings import DEV_INDEX             # noqa: E402

UPDATES = "/lib/modules/$(uname -r)/updates"
LOAD = "insmod %s/ornic.ko && insmod %s/ornic_ib.ko" % (UPDATES, UPDATES)
UNLOAD = "{ [ ! -d /sys/module/ornic_ib ] || rmmod ornic_ib; } && { [ ! -d /sys/module/ornic ] || rmmod ornic; }"
INTERFACE = "$(ls -d /sys/bus/pci/drivers/ornic/*/net/* | head -n 1 | xargs basename)"
UP = ("i=%s; ip link set $i up && ip addr replace 10.88.0.%%d/24 dev $i && until rdma link show ornic0/1 | grep -q 'state ACTIVE'; "
      "do sleep 0.05; done; until grep -q ffff: /sys/class/infiniband/ornic0/ports/1/gids/*; do sleep 0.05; done" % INTERFACE)


def patient(cap):
    """Return CAP with the longest possible admin timeout: 25 seconds."""
    return cap | c.ORNIC_CAP_TIMEOUT_MASK << c.ORNIC_CAP_ADMIN_TIMEOUT_SHIFT


class Proxied(unittest.TestCase):
    """Test case with VMs and the proxy of each one's device. No test may break a rule or cause a kernel complaint."""

    vms = 1
    lies = {}                   # fields of the proxies' Lies from the start
    smp = 2                     # processors of a VM: a destroy and its callbacks run at once
    lab = None                  # the file's lab, with the proxies
    proxies = []

    @classmethod
    def setUpClass(cls):
        if Proxied.lab:
            return
        Proxied.lab = Lab.up(cls.vms, name="proxied-%d" % os.getpid(), proxy=cls.between, guest=harness.GUEST, smp=cls.smp,
                             ornicd=os.path.join(harness.BUILT, "ornicd"), modules=harness.PAYLOAD, provider=harness.PAYLOAD)
        atexit.register(Proxied.lab.down)
        for vm in Proxied.lab.vms:
            vm.patience = harness.SLOW

    @classmethod
    def between(cls, listen_at, device_path):
        Proxied.proxies.append(Proxy(listen_at, device_path))
        Proxied.proxies[-1].lies = Lies(**cls.lies)

    wanted = None                               # a complaint of the kernel that a test is about

    def setUp(self):
        self.vm, self.proxy = self.lab.vms[0], self.proxies[0]
        self.heard = [harness.complaints(vm) for vm in self.lab.vms]
        self.tried = [proxy.rules.tried.copy() for proxy in self.proxies]
        self.addCleanup(self.judge)             # runs last

    def judge(self):
        """Check the conditions that hold after every test."""
        for vm, proxy, heard in zip(self.lab.vms, self.proxies, self.heard):
            broken, proxy.rules.broken = proxy.rules.broken, []
            self.assertFalse(broken, "%s: %s" % (vm.name, broken))
            self.assertIsNone(proxy.broken, repr(proxy.broken))
            self.assertTrue(vm.alive(), vm.name + " is dead")
            said = {text for text in harness.complaints(vm) - heard if not self.wanted or self.wanted not in text}
            self.assertFalse(said, "%s: kernel said: %s" % (vm.name, said))
        self.assertTrue(self.lab.daemons_alive(), "ornicd is dead")

    def assertTried(self, *clauses):
        """Check that the test exercised each of these clauses since it began."""
        for clause in clauses:
            self.assertGreater(self.proxy.rules.tried[clause], self.tried[0][clause], "%s was not tried" % clause)

    def spawn(self, command, vm=None, timeout=120):
        """Start a command that is killed at the end of the test if it still runs."""
        process = (vm or self.vm).spawn(command, timeout=timeout * harness.SLOW)
        self.addCleanup(harness.GuestTest.reap, process)
        return process

    def said(self, text):
        """Return true if the kernel log contains this text."""
        return text in self.vm.dmesg()


__all__ = ["CONFIG", "DEV_INDEX", "INTERFACE", "LOAD", "Lies", "Proxied", "READ", "UNLOAD", "UP", "UPDATES", "WRITE", "c", "pack",
           "patient", "tap", "unpack"]
