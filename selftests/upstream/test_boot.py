#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Kernels with the series built in-tree, booted in VMs with rdma-core's series: perftest, pyverbs, kselftest. Only with --all.

The user space is Debian testing's, whose libibverbs has the version of the rdma-core series.
"""
import glob
import os
import re
import shutil
import subprocess
import unittest

import base
from base import BUILD, Rooted
import tap
from lab import Lab

GUEST = "forky"
OURS = os.path.join("drivers", "net", "ornic")
PATIENCE = 3600


@unittest.skipUnless(base.EVERYTHING, "make upstream-check")
class InTree(Rooted):
    objects = "objects-boot-"   # those of test_series are made with other options

    @classmethod
    def setUpClass(cls):
        it = cls()
        it.fresh("rdma-core", "rdma-core")
        it.inside("rdma-core", "rdma-core", "apply")
        it.inside("rdma-core", "rdma-core", "build")

    def boot(self, kernel):
        """A lab whose VMs have a kernel, its own drivers and the provider."""
        self.fresh("kernel", kernel)
        self.inside("kernel", kernel, "apply")
        self.inside("kernel", kernel, "boot")
        objects = os.path.join(BUILD, self.objects + kernel, "boot")
        payload = os.path.join(objects, "payload")
        os.mkdir(payload)
        core = os.path.join(BUILD, self.objects + "rdma-core")
        for pattern in (objects + "/modules/*/kernel/drivers/**/ornic*.ko", core + "/lib/libornic-rdmav*.so"):
            files = glob.glob(pattern, recursive=True)
            self.assertTrue(files, pattern)
            for file in files:
                shutil.copy(file, payload)
        # that of rdma-core's build tree has the path of the provider on this host
        shutil.copy(os.path.join(base.TOP, "tools", "libornic", "ornic.driver"), payload)
        lab = Lab.up(2, name="upstream-%d" % os.getpid(), guest=GUEST, kernel=objects, modules=payload, provider=payload, mem="3G",
                     ornicd=os.path.join(base.BUILT, "ornicd"))
        self.addCleanup(lab.down)
        return lab

    def check(self, kernel):
        lab = self.boot(kernel)
        said = lab.vms[0].run("uname -r; ls /sys/class/infiniband").out
        self.assertTrue(said.startswith(kernel + "."), said)
        for name in ("perftest", "pyverbs"):
            with self.subTest(name):
                done = subprocess.run([os.path.join(base.TOP, "selftests", "guest", "test_%s.py" % name)], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                      timeout=PATIENCE, env={**os.environ, "ORNIC_TEST_LAB": lab.name, "GUEST": GUEST})
                failed = re.findall(r"(?m)^not ok .*(?:\n#.*)*", done.stdout)
                self.assertEqual(done.returncode, 0, "\n".join(failed)[:6000] or done.stdout[-6000:])
                passed = [line for line in done.stdout.splitlines() if line.startswith("ok ") and "# SKIP" not in line]
                self.assertTrue(passed, done.stdout[-6000:])
                print("# %s on %s: %d passed" % (name, said.split()[0], len(passed)))

        with self.subTest("kselftest"):
            self.kselftest(lab.vms[0], kernel)

    def kselftest(self, vm, kernel):
        """The series' own test, last: it unbinds the driver and binds it again."""
        here = os.path.join(BUILD, "kselftest-" + kernel)
        selftests = os.path.join("tools", "testing", "selftests")
        changed = os.path.join(BUILD, "changes-" + kernel, "upper", selftests, OURS)
        shutil.rmtree(here, ignore_errors=True)
        shutil.copytree(changed, os.path.join(here, OURS))
        os.mkdir(os.path.join(here, "kselftest"))
        shutil.copy(os.path.join(self.source(kernel), selftests, "kselftest", "ktap_helpers.sh"), os.path.join(here, "kselftest"))
        with open(os.path.join(changed, "settings"), encoding="utf-8") as f:
            timeout = int(re.fullmatch(r"timeout=(\d+)\n", f.read())[1])
        vm.push(here, "/tmp/kselftest")
        for program in sorted(glob.glob(os.path.join(changed, "*.sh"))):
            done = vm.run("/tmp/kselftest/%s/%s" % (OURS, os.path.basename(program)), timeout, check=False)
            said = done.out.splitlines()
            self.assertEqual(done.rc, 0, done.out + done.err)
            self.assertEqual(said[0], "TAP version 13")
            plan = int(re.fullmatch(r"1\.\.(\d+)", said[1])[1])
            passed = [line for line in said if re.match(r"ok \d+ ", line) and "# SKIP" not in line]
            self.assertEqual(len(passed), plan, done.out)
            print("# kselftest on %s: %d passed" % (kernel, plan))

    def test_7_2(self):
        self.check("7.2")

    def test_6_12(self):
        self.check("6.12")


if __name__ == "__main__":
    tap.main()
