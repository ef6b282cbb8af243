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

# Every test runs these commands, so they wait by functions of bash; a program in a loop would take most of the test's time.
UPDATES = "/lib/modules/*/updates"
LOAD = "insmod %s/ornic.ko && insmod %s/ornic_ib.ko" % (UPDATES, UPDATES)
UNLOAD = "set --; for m in ornic_ib ornic; do [ ! -d /sys/module/$m ] || set -- $* $m; done; [ $# = 0 ] || rmmod $*"
INTERFACE = "$(set -- /sys/bus/pci/drivers/ornic/*/net/*; echo ${1##*/})"
UP = ("i=%s; ip link set $i up && ip addr replace 10.88.0.%%d/24 dev $i && until usable ornic0; do sleep 0.05; done" % INTERFACE)


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
    has_programs = False

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
            self.assertFalse(said, "%s: kernel said: %s\n%s" % (vm.name, said, "\n".join(vm.console().splitlines()[-12:])))
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

    def need_programs(self):
        """Put the test programs and modules into VM 0, if no test of the file has done so."""
        if not Proxied.has_programs:
            self.vm.push(harness.PROGRAMS, "/tmp/selftests")
            Proxied.has_programs = True

    def said(self, text):
        """Return true if the kernel log contains this text."""
        return text in self.vm.dmesg()


__all__ = ["CONFIG", "DEV_INDEX", "INTERFACE", "LOAD", "Lies", "Proxied", "READ", "UNLOAD", "UP", "UPDATES", "WRITE", "c", "pack",
           "patient", "tap", "unpack"]
