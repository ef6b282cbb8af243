#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Two hosts: each VM on its own ornicd, the two joined by a UDP tunnel, or by veth between two network namespaces.

Other files of this suite test within one daemon. They run here unchanged, in a lab that is joined in this way. Not all do, and none of
their tests within one VM, which would use one daemon only, to save time; `make check HOSTS=udp T=guest` runs the whole suite so.
"""
import os
import subprocess
import unittest

import harness
import tap

FILES = ("test_data", "test_errors", "test_rdmacm")
PATIENCE = 900 * harness.SLOW


class Hosts(unittest.TestCase):
    """A lab for each way to join; a test for each file."""

    @classmethod
    def setUpClass(cls):
        cls.lab = harness.start_lab(hosts=cls.hosts)
        cls.addClassCleanup(cls.lab.down)

    def check(self, name):
        done = subprocess.run([os.path.join(harness.HERE, name + ".py")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=PATIENCE,
                              env={**os.environ, "ORNIC_TEST_LAB": self.lab.name, "HOSTS": self.hosts, "ORNIC_TEST_PLACES": "between"})
        self.assertEqual(done.returncode, 0, done.stdout[-6000:])
        passed = [line for line in done.stdout.splitlines() if line.startswith("ok ") and "# SKIP" not in line]
        self.assertTrue(passed, done.stdout[-6000:])
        print("# %s: %d passed" % (name, len(passed)))


class Udp(Hosts):
    hosts = "udp"


class Veth(Hosts):
    hosts = "veth"


for case in (Udp, Veth):
    for name in FILES:
        setattr(case, name, lambda self, name=name: self.check(name))
del Hosts

if __name__ == "__main__":
    tap.main()
