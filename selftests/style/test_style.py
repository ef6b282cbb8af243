#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Kernel tools for driver, interface headers and daemon: compiler warnings, sparse, checkpatch."""
import glob
import os
import re
import subprocess
import sys
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path[:0] = [os.path.join(TOP, "selftests", "lib"), os.path.join(TOP, "tools")]
sys.dont_write_bytecode = True

import passed  # noqa: E402
import tap  # noqa: E402
from lab import build, cache  # noqa: E402

LAB = os.path.join(TOP, "tools", "lab", "lab")
GUEST = "trixie"                # its build root has checkpatch
BUILD = os.environ.get("O", os.path.join(TOP, "build"))
# Files for checkpatch, and the types of message that do not apply there, each with its reason.
KERNEL = ("include/linux/ornic/*.h", "drivers/*/*/ornic/*.[ch]", "drivers/*/*/*/ornic/*.[ch]", "selftests/kmod/*.[ch]")
KERNEL_IGNORES = {
    "FILE_PATH_CHANGES": "MAINTAINERS is the kernel tree's",
    "CAMELCASE": "members of struct ethtool_eth_mac_stats",
}
COMPAT = ("compat/include/*/*.h", "compat/include/*/*/*.h")
COMPAT_IGNORES = KERNEL_IGNORES | {
    "COMPLEX_MACRO": "one list of verbs makes a structure and the code that copies it",
    "MACRO_ARG_REUSE": "one list of verbs makes a structure and the code that copies it",
    "MACRO_ARG_PRECEDENCE": "the argument is the name of a member",
    "MULTISTATEMENT_MACRO_USE_DO_WHILE": "a member of a structure",
    "TRAILING_SEMICOLON": "a member of a structure, or one statement per verb",
    "DO_WHILE_MACRO_WITH_TRAILING_SEMICOLON": "one statement per verb",
    "CONST_STRUCT": "the kernel's table is filled here",
    "UNNECESSARY_CASTS": "kzalloc_obj() gives a pointer to the type, not to void",
    "MACRO_ARG_UNUSED": "a macro that takes the second of its arguments",
}
INTERFACE = ("include/ornic/*.h", "uapi/rdma/*.h")
INTERFACE_IGNORES = KERNEL_IGNORES | {
    "BIT_MACRO": "user space has no BIT()",
    "LINE_SPACING": "a structure's assertions stand right below it",
    "CAMELCASE": "_Static_assert",
    "SPDX_LICENSE_TAG": "the licences of the kernel's own RDMA headers; test_tree checks them",
}
USER = ("tools/ornicd/*.[ch]", "tools/ornicd/*/*.[ch]", "tools/ornicctl/*.[ch]", "tools/libornic/*.[ch]")
USER_IGNORES = INTERFACE_IGNORES | {
    "LONG_LINE_COMMENT": "a field and its meaning stay on one line",
    "PREFER_KERNEL_TYPES": "user space uses the C library's",
    "PREFER_DEFINED_ATTRIBUTE_MACRO": "user space has no __aligned()",
    "ARRAY_SIZE": "user space has no ARRAY_SIZE()",
    "USE_NEGATIVE_ERRNO": "verbs return positive ones",
    "MACRO_ARG_REUSE": "log macros and tables take constants",
    "MACRO_ARG_UNUSED": "one list makes several tables",
    "COMPLEX_MACRO": "one list makes several tables",
    "BRACKET_SPACE": "one list makes several tables",
    "MACRO_WITH_FLOW_CONTROL": "one list makes several tables",
    "NEW_TYPEDEFS": "types of callbacks; rdma-core's own style in the provider",
    "SPACING": "sizeof of rdma-core's macros",
    "STRCPY": "a length was checked before",
    "CONST_STRUCT": "the kernel's structures of that name are others",
}


def inside(*command):
    """Run a command in the build root; return the finished process."""
    return subprocess.run([LAB, "buildroot-run", "--guest", GUEST, "--", *command], cwd=TOP, capture_output=True, text=True)


class Style(unittest.TestCase):
    maxDiff = None

    def test_modules_without_warning(self):
        """sparse; warnings of the compiler are errors in every build, and this guest has W=1."""
        done = subprocess.run(["make", "-s", "sparse", "GUEST=" + GUEST, "O=" + os.path.relpath(BUILD, TOP)], cwd=TOP,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        said = [line for line in (done.stdout + done.stderr).splitlines() if re.search(r"warning|error", line)]
        self.assertEqual(said, [])

    def checkpatch(self, patterns, ignores):
        found = sorted(f for pattern in patterns for f in glob.glob(os.path.join(TOP, pattern)))
        self.assertTrue(found)
        command = ["perl", "/usr/src/checkpatch/checkpatch.pl", "--no-tree", "--strict", "--terse", "--no-summary", "--show-types",
                   "--max-line-length=100", "--ignore", ",".join(ignores), "-f"]
        before = passed.Passed(cache.root(), "checkpatch", build.artefact(GUEST).get(), *command)
        entries = {f: before.entry(f, os.path.relpath(f, TOP)) for f in found}
        files = [f for f in found if not before.has(entries[f])]
        if not files:
            return
        done = inside(*command, *files)
        self.assertEqual((done.returncode, done.stdout.replace(TOP + "/", "")), (0, ""), done.stderr)
        for file in files:
            before.add(entries[file])

    def test_checkpatch_drivers(self):
        self.checkpatch(KERNEL, KERNEL_IGNORES)

    def test_checkpatch_compat(self):
        self.checkpatch(COMPAT, COMPAT_IGNORES)

    def test_checkpatch_interface(self):
        self.checkpatch(INTERFACE, INTERFACE_IGNORES)

    def test_checkpatch_user_space(self):
        self.checkpatch(USER, USER_IGNORES)


if __name__ == "__main__":
    tap.main()
