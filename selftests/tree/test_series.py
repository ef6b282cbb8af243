#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""How the kernel series is cut into patches. What needs the source of a kernel is in selftests/upstream."""
import os
import sys
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
for folder in ("tools/series", "selftests/lib"):
    sys.path.insert(0, os.path.join(TOP, folder))
sys.dont_write_bytecode = True

import series  # noqa: E402
import tap  # noqa: E402

FOLDERS = ("drivers/net/ethernet/ornic", "drivers/infiniband/hw/ornic")


class Patches(unittest.TestCase):
    def test_every_file_is_in_one_patch(self):
        files = [here for patch in series.split(series.load("kernel")) for here, _ in patch]
        self.assertEqual(len(files), len(set(files)))
        for folder in FOLDERS:
            have = {folder + "/" + name for name in os.listdir(os.path.join(TOP, folder))}
            self.assertEqual(have - set(files), set())

    def test_a_file_without_patch_is_found(self):
        about = series.load("kernel")
        about["patch"] = [p for p in about["patch"] if "completion queues" not in p["subject"]]
        rest = next(p for p in about["patch"] if "and counters" in p["subject"])
        rest["copy"] = [c for c in rest["copy"] if not c[0].endswith("*.c")]
        with self.assertRaisesRegex(series.SeriesError, "poll_cq.c is in 0 patches"):
            series.split(about)

    def test_a_makefile_grows(self):
        whole = "ornic-y := a.o b.o \\\n\t   c.o d.o \\\n\t   e.o\nobj-m += f.o\n"
        for there, want in (("abcde", whole), ("b", "ornic-y := b.o\nobj-m += f.o\n"), ("e", "ornic-y := e.o\nobj-m += f.o\n"),
                            ("ade", "ornic-y := a.o \\\n\t   d.o \\\n\t   e.o\nobj-m += f.o\n")):
            self.assertEqual(series.grown(whole, lambda name, there=there: name[0] in there), want)

    def test_a_header_comes_with_its_first_user(self):
        about = series.load("kernel")
        subjects = [p["subject"] for p in about["patch"]]
        where = {here: i for i, patch in enumerate(series.split(about)) for here, _ in patch}
        self.assertEqual(subjects[where["drivers/net/ethernet/ornic/admin.h"]], "net/ornic: Add admin queue and event queues")
        self.assertEqual(subjects[where["drivers/net/ethernet/ornic/netdev.h"]], "net/ornic: Add the network interface")


if __name__ == "__main__":
    tap.main()
