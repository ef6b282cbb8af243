#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The series for the kernel and for rdma-core: complete, apply, and build in the source of each base.

With --all also what takes longer than ten minutes: every patch by itself, the options built in, KUnit, all of rdma-core.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

import base
from base import BUILD, EVERYTHING, KERNELS, Rooted
import series
import tap

# What checkpatch says and does not apply, with the reason.
IGNORES = {
    "FILE_PATH_CHANGES": "asked of each patch that adds files without a change to MAINTAINERS; test_maintainers looks at the entry",
    "BIT_MACRO": "the interface headers are also user space's, which has no BIT()",
    "CAMELCASE": "_Static_assert of the interface headers",
    "LINE_SPACING": "a structure's assertions stand right below it",
}


FOLDERS = ("drivers/net/ethernet/ornic", "drivers/infiniband/hw/ornic")


class Kernel(Rooted):
    def test_the_makefiles_end_as_here(self):
        """After the last patch a Makefile has all objects, and only the lines of the tests besides."""
        self.fresh("kernel", "7.2")
        self.inside("kernel", "7.2", "apply")
        for folder in FOLDERS:
            with open(os.path.join(base.TOP, folder, "Makefile"), encoding="utf-8") as f:
                here = f.read()
            with open(os.path.join(BUILD, "changes-7.2", "upper", folder, "Makefile"), encoding="utf-8") as f:
                there = "".join(line for line in f if "tests/" not in line)
            self.assertEqual(there.rstrip("\n"), here.rstrip("\n"))

    def test_cover_letter(self):
        """The letter has the numbers of the patches for each list, and the base."""
        for name, first in (("7.2", 1), ("6.12", 2)):
            names = self.fresh("kernel", name)
            with open(os.path.join(BUILD, name, names[0]), encoding="utf-8") as f:
                letter = f.read()
            net, rdma = (re.search(r"For %s: patches (\d+) to (\d+)" % to, letter) for to in ("netdev", "linux-rdma"))
            self.assertEqual([int(n) for n in (*net.groups(), *rdma.groups())],
                             [first, int(net[2]), int(net[2]) + 1, len(names) - 1])
            for i, patch in enumerate(names[first:], first):
                self.assertEqual("net-ornic" in patch, i <= int(net[2]), patch)
            self.assertRegex(letter, r"(?m)^base-version: Linux %s\." % re.escape(name))

    def made(self, tree, kind="kernel"):
        """What the command says of a source tree, and the patches' names."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([os.path.join(base.TOP, "tools", "series", "make"), kind, tree, folder + "/out"],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            names = sorted(os.listdir(folder + "/out")) if os.path.exists(folder + "/out") else []
        self.assertEqual(done.returncode == 0, bool(names), done.stdout)
        return done.stdout, names

    def test_source_tree(self):
        """A tree given by its folder gets the wrappers by its version."""
        for name, wrappers in (("6.12", 1), ("7.2", 0)):
            with self.subTest(name=name):
                said, names = self.made(self.source(name))
                self.assertIn("%d patches and a cover letter" % (len(names) - 1), said)
                self.assertEqual(sum("wrappers-for-an-older-kernel" in n for n in names), wrappers, names)

    def test_no_source_tree(self):
        with tempfile.TemporaryDirectory() as tree:
            said, _ = self.made(tree)
            self.assertRegex(said, r"(?m)^series: %s is not a source tree of Linux: .*No such file" % tree)
            with open(tree + "/Makefile", "w", encoding="utf-8") as f:
                f.write("VERSION = 7\nPATCHLEVEL = x\n")
            said, _ = self.made(tree)
            self.assertIn("is not a source tree of Linux: its Makefile has no version", said)
            with open(tree + "/Makefile", "w", encoding="utf-8") as f:
                f.write("VERSION = 7\nPATCHLEVEL = 2\nSUBLEVEL = 0\n")
            said, _ = self.made(tree)
            self.assertRegex(said, r"(?m)^series: the base has no \S+$")

    def test_applies_and_builds(self):
        """W=1 and sparse, as modules: not a word."""
        for base in KERNELS:
            with self.subTest(base=base):
                names = self.fresh("kernel", base)
                self.assertIn(len(names) - 1, range(10, 21))
                self.inside("kernel", base, "apply")
                self.assertEqual(self.inside("kernel", base, "build", "m", "m"), "")

    def test_kernel_doc(self):
        self.fresh("kernel", "7.2")
        self.inside("kernel", "7.2", "apply")
        self.assertEqual(self.inside("kernel", "7.2", "kernel-doc"), "")

    def test_documentation(self):
        self.fresh("kernel", "7.2")
        self.inside("kernel", "7.2", "apply")
        self.assertEqual(self.inside("kernel", "7.2", "docs"), "")

    def test_maintainers(self):
        """get_maintainer finds no fault with the entry and names person and lists for the files."""
        self.fresh("kernel", "7.2")
        self.inside("kernel", "7.2", "apply")
        said = self.inside("kernel", "7.2", "maintainers").splitlines()
        self.assertEqual([line for line in said if line.startswith("fault:")], [])
        mail = subprocess.run(["git", "-C", base.TOP, "config", "user.email"], capture_output=True, text=True).stdout.strip()
        self.assertEqual(len(said), 3)
        for line in said:
            for address in (mail, "netdev@vger.kernel.org", "linux-rdma@vger.kernel.org"):
                self.assertIn(address, line)

    def test_checkpatch(self):
        self.fresh("kernel", "7.2")
        self.assertEqual(self.inside("kernel", "7.2", "checkpatch", ",".join(IGNORES)), "")

    @unittest.skipUnless(EVERYTHING, "make upstream-check")
    def test_every_patch_builds(self):
        """Its objects compile with W=1, its headers each by itself, and its modules lack no function of the series."""
        for base in KERNELS:
            with self.subTest(base=base):
                names = self.fresh("kernel", base)
                said = self.inside("kernel", base, "each").splitlines()
                wanted = ["built " + name for name in names[1:]]
                if series.is_older(series.load("kernel"), "kernel", self.source(base)):
                    wanted[0] = wanted[0].replace("built", "applied")
                self.assertEqual(said, wanted)

    @unittest.skipUnless(EVERYTHING, "make upstream-check")
    def test_options(self):
        for base in KERNELS:
            self.fresh("kernel", base)
            self.inside("kernel", base, "apply")
            for options in (("y", "y"), ("y", "m"), ("m", "n"), ("n", "n")):
                with self.subTest(base=base, options=options):
                    self.assertEqual(self.inside("kernel", base, "build", *options), "")

    @unittest.skipUnless(EVERYTHING, "make upstream-check")
    def test_coccicheck(self):
        self.fresh("kernel", "7.2")
        self.inside("kernel", "7.2", "apply")
        self.inside("kernel", "7.2", "build", "m", "m")
        said = self.inside("kernel", "7.2", "coccicheck").splitlines()
        ran, of = re.fullmatch(r"ran (\d+) of (\d+)", said[-1]).groups()
        self.assertGreater(int(ran), 0)
        self.assertEqual(ran, of)
        found = [line for line in said if re.search(r"ornic/\S*\.[ch]:\d", line)]
        wrong = [line for line in said if re.search(r"exception|Fatal error|Skipping coccinelle", line)]
        self.assertEqual(found + wrong, [])

    @unittest.skipUnless(EVERYTHING, "make upstream-check")
    def test_kunit(self):
        """All suites under User Mode Linux, each with as many cases as its table has."""
        self.fresh("kernel", "7.2")
        self.inside("kernel", "7.2", "apply")
        self.objects = "objects-um-"    # of another architecture
        said = self.inside("kernel", "7.2", "kunit")
        for suite, cases in kunit_suites().items():
            with self.subTest(suite=suite):
                self.assertRegex(said, r"(?m)^ok \d+ %s$" % suite)
                self.assertRegex(said, r"(?m)^# %s: pass:%d fail:0 skip:0 total:%d$" % (suite, cases, cases))


def kunit_suites():
    """The KUnit suites of the series with the number of their cases."""
    suites = {}
    for path in glob.glob(os.path.join(base.TOP, "tools", "series", "kernel", "add", "drivers", "**", "*_kunit.c"), recursive=True):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        suites[re.search(r'\.name = "(\w+)",\n\t\.test_cases', text)[1]] = len(re.findall(r"^\tKUNIT_CASE", text, re.M))
    return suites


class RdmaCore(Rooted):
    def test_applies(self):
        self.fresh("rdma-core", "rdma-core")
        self.inside("rdma-core", "rdma-core", "apply")

    def test_nothing_for_older_versions(self):
        for name in self.fresh("rdma-core", "rdma-core"):
            with open(os.path.join(BUILD, "rdma-core", name), encoding="utf-8") as f:
                self.assertNotRegex(f.read(), "ORNIC_LACKS|IBVERBS_PABI_VERSION|compat\\.h")

    def test_conditionals_for_older_versions(self):
        self.assertEqual(series.newest("a\n#ifndef OLD_X\nb\n#endif\nc\n#ifdef Y\nd\n#endif\n", "OLD_"),
                         "a\nb\nc\n#ifdef Y\nd\n#endif\n")
        with self.assertRaisesRegex(series.SeriesError, "#else"):
            series.newest("#ifndef OLD_X\na\n#else\nb\n#endif\n", "OLD_")

    def test_a_table_grows(self):
        text = "static ops x = {\n\t.a = ornic_a,\n\t.b = ornic_b,\n\t.c = 1,\n};\n"
        self.assertEqual(series.with_members(text, lambda name: name != "ornic_a"), text.replace("\t.a = ornic_a,\n", ""))

    @unittest.skipUnless(EVERYTHING, "make upstream-check")
    def test_every_patch_builds(self):
        names = self.fresh("rdma-core", "rdma-core")
        said = self.inside("rdma-core", "rdma-core", "each").splitlines()
        self.assertEqual(said, ["applied " + names[1]] + ["built " + name for name in names[2:]])

    @unittest.skipUnless(EVERYTHING, "make upstream-check")
    def test_builds(self):
        self.fresh("rdma-core", "rdma-core")
        self.inside("rdma-core", "rdma-core", "apply")
        self.assertIn("libornic-rdmav", self.inside("rdma-core", "rdma-core", "build"))
        said = self.inside("rdma-core", "rdma-core", "check")
        for library in ("libibverbs1", "librdmacm1", "ibverbs-providers"):
            self.assertIn("symbols of %s: as before" % library, said)
        self.assertIn("check-build: passed", said)
        with open(os.path.join(BUILD, "objects-rdma-core", "providers", "ornic", "man", "ornic.7"), encoding="utf-8") as f:
            self.assertIn("provider of ornic", f.read())


class Agreement(Rooted):
    def test_number_of_the_driver(self):
        """RDMA_DRIVER_ORNIC has one value, in kernels old and new and in rdma-core, and the in-tree driver uses it."""
        values = set()
        for kind, base, header in [("kernel", base, "include/uapi") for base in KERNELS] + [("rdma-core", "rdma-core", "kernel-headers")]:
            self.fresh(kind, base)
            self.inside(kind, base, "apply")
            upper = os.path.join(BUILD, "changes-" + base, "upper")
            values.add(driver_number(os.path.join(upper, header, "rdma", "ib_user_ioctl_verbs.h")))
            if kind == "kernel":
                with open(os.path.join(upper, "drivers/infiniband/hw/ornic/device.c"), encoding="utf-8") as f:
                    self.assertIn(".driver_id = RDMA_DRIVER_ORNIC,", f.read())
        self.assertEqual(len(values), 1, values)


def driver_number(path):
    """The value that enum rdma_driver_id gives ornic."""
    with open(path, encoding="utf-8") as f:
        body = re.search(r"enum rdma_driver_id \{(.*?)\}", f.read(), re.S)[1]
    values, value = {}, -1
    for name, told in re.findall(r"(RDMA_DRIVER_\w+)(?:\s*=\s*(\w+))?,", body):
        value = values[told] if told in values else int(told) if told else value + 1
        values[name] = value
    return values["RDMA_DRIVER_ORNIC"]


if __name__ == "__main__":
    tap.main()
