#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The series for the kernel and for rdma-core: complete, apply, and build in the source of each base.

With --all also what takes longer than ten minutes: every patch by itself, the options built in, KUnit, all of rdma-core.
"""
import os
import re
import shutil
import sys
import unittest

import base
from base import BUILD, EVERYTHING, KERNELS, Rooted
import series
import tap

# What checkpatch says and does not apply, with the reason.
IGNORES = {
    "FILE_PATH_CHANGES": "the entry in MAINTAINERS comes with the last patch of the driver",
    "BIT_MACRO": "the interface headers are also user space's, which has no BIT()",
    "CAMELCASE": "_Static_assert of the interface headers",
    "LINE_SPACING": "a structure's assertions stand right below it",
    "LONG_LINE_COMMENT": "a field of the interface and its meaning stay on one line",
    "ALLOC_WITH_SIZEOF": "kzalloc_obj() is newer than the kernels that the drivers are also built for",
}


class Kernel(Rooted):
    def test_every_file_is_in_one_patch(self):
        files = [here for patch in series.split(series.load("kernel")) for here, _ in patch]
        self.assertEqual(len(files), len(set(files)))
        for folder in ("drivers/net/ethernet/ornic", "drivers/infiniband/hw/ornic"):
            have = {folder + "/" + name for name in os.listdir(os.path.join(base.TOP, folder))}
            self.assertEqual(have - set(files), set())

    def test_a_file_without_patch_is_found(self):
        about = series.load("kernel")
        about["patch"] = [p for p in about["patch"] if "completion queues" not in p["subject"]]
        rest = next(p for p in about["patch"] if "Add events, counters" in p["subject"])
        rest["copy"] = [c for c in rest["copy"] if not c[0].endswith("*.[ch]")]
        with self.assertRaisesRegex(series.SeriesError, "poll_cq.c is in 0 patches"):
            series.split(about)

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

    def test_checkpatch(self):
        self.fresh("kernel", "7.2")
        self.assertEqual(self.inside("kernel", "7.2", "checkpatch", ",".join(IGNORES)), "")

    @unittest.skipUnless(EVERYTHING, "make upstream-check")
    def test_every_patch_builds(self):
        for base in KERNELS:
            with self.subTest(base=base):
                names = self.fresh("kernel", base)
                said = self.inside("kernel", base, "each").splitlines()
                self.assertEqual(len(said), len(names) - 1)
                self.assertFalse([line for line in said if "warning" in line])

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
        said = self.inside("kernel", "7.2", "coccicheck")
        self.assertEqual([line for line in said.splitlines() if "ornic/" in line and ".c:" in line], [])

    @unittest.skipUnless(EVERYTHING, "make upstream-check")
    def test_kunit(self):
        self.fresh("kernel", "7.2")
        self.inside("kernel", "7.2", "apply")
        shutil.rmtree(os.path.join(BUILD, "objects-7.2"), ignore_errors=True)
        said = self.inside("kernel", "7.2", "kunit")
        self.assertRegex(said, r"(?m)^ok \d+ ornic_ring$")


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

    @unittest.skipUnless(EVERYTHING, "make upstream-check")
    def test_builds(self):
        self.fresh("rdma-core", "rdma-core")
        self.inside("rdma-core", "rdma-core", "apply")
        self.assertIn("libornic-rdmav", self.inside("rdma-core", "rdma-core", "build"))
        said = self.inside("rdma-core", "rdma-core", "check")
        for library in ("libibverbs1", "librdmacm1", "ibverbs-providers"):
            self.assertIn("symbols of %s: as before" % library, said)


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
