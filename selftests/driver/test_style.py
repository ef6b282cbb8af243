#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the kernel's own tools say of driver, interface headers and daemon: compiler warnings, sparse, checkpatch."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(TOP, "selftests", "lib"))

import tap  # noqa: E402

LAB = os.path.join(TOP, "tools", "lab", "lab")
BUILD = os.environ.get("O", os.path.join(TOP, "build"))
KERNEL_STYLE = ("include/ornic/*.h", "include/linux/ornic/*.h", "uapi/rdma/*.h", "drivers/*/*/ornic/*.[ch]",
                "drivers/*/*/*/ornic/*.[ch]", "tools/ornicd/*.[ch]", "tools/ornicd/*/*.[ch]", "tools/libornic/*.[ch]")
# Said of user-space code and of interface headers, where the kernel's way does not exist; each with its reason.
IGNORED = ",".join((
    "FILE_PATH_CHANGES",        # there is no MAINTAINERS file outside the kernel tree
    "PREFER_KERNEL_TYPES",      # user space and interface headers use the C library's
    "CONFIG_DESCRIPTION",
    "SPDX_LICENSE_TAG",         # GPL-2.0 OR Linux-OpenIB, as the kernel's own RDMA headers, checked by test_tree
))


def inside(*command):
    """Run a command in the build root; the finished process."""
    return subprocess.run([LAB, "buildroot-run", "--", *command], cwd=TOP, capture_output=True, text=True)


class Style(unittest.TestCase):
    maxDiff = None

    def test_modules_without_warning(self):
        """W=1 and sparse."""
        os.makedirs(BUILD, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILD) as tree:
            for name in ("drivers", "include", "uapi"):
                shutil.copytree(os.path.join(TOP, name), os.path.join(tree, name))
            for name in ("Kbuild", "Kconfig"):
                shutil.copy(os.path.join(TOP, name), tree)
            done = inside("sh", "-c", "make -s -C /lib/modules/*/build M=%s W=1 C=2 modules" % tree)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        said = [line for line in (done.stdout + done.stderr).splitlines() if re.search(r"warning|error", line)]
        self.assertEqual(said, [])

    def test_checkpatch(self):
        files = sorted(f for pattern in KERNEL_STYLE for f in glob.glob(os.path.join(TOP, pattern)))
        self.assertTrue(files)
        done = inside("perl", "/usr/src/checkpatch/checkpatch.pl", "--no-tree", "--strict", "--terse", "--no-summary",
                      "--max-line-length=100", "--ignore", IGNORED, "-f", *files)
        self.assertEqual(done.stdout.replace(TOP + "/", ""), "", done.stderr)


if __name__ == "__main__":
    tap.main()
