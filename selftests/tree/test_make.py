#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The top Makefile: its help, its error messages, its dependencies, what it does without root. Nothing is built here: make -n and
make -W."""
import concurrent.futures
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

import program  # noqa: E402
import tap      # noqa: E402

BUILD = os.path.relpath(program.BUILD, TOP)
OURS = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "O", "T", "V", "W", "KDIR", "GUEST", "JOBS")
ENV = {k: v for k, v in os.environ.items() if k not in OURS}
PIECES = [os.path.join(BUILD, "ornicd"), os.path.join(BUILD, "ornicctl"), "provider", "guest-modules"]
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
AS_NOBODY = NOBODY if os.geteuid() == 0 else []
HAS_GUEST = os.path.exists(os.path.join(program.BUILD, "guest", os.environ.get("GUEST", "trixie"), "ornic.ko"))
KTEST = os.path.join(BUILD, "guest", "trixie", "selftests", "ornic_ktest.ko")


def steps(out):
    """Return the steps that make -n would have shown."""
    return re.findall(r'^echo "(  [A-Z]+ .*)"', out, re.M)


def make(*args, cwd=TOP, before=()):
    done = subprocess.run([*before, "make", "--no-print-directory", *args], cwd=cwd, env=ENV, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


class Refusals(unittest.TestCase):
    """Impossible requests end with one line."""

    def refused(self, *said, args=(), **options):
        status, out = make(*args, **options)
        self.assertNotEqual(status, 0, out)
        self.assertEqual(len(out.splitlines()), 1, out)
        for words in said:
            self.assertIn(words, out)

    def elsewhere(self, name):
        """Return a folder with nothing but the Makefile, removed after the test."""
        folder = tempfile.mkdtemp(prefix="ornic-make-")
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        path = os.path.join(folder, name)
        os.mkdir(path)
        shutil.copy(os.path.join(TOP, "Makefile"), path)
        return path

    def test_kernel_folder(self):
        self.refused("KDIR=/nowhere", "linux-headers", args=["modules", "KDIR=/nowhere"])

    def test_output_elsewhere(self):
        for name in ("/tmp/x", "../x", "a b"):
            self.refused("O=" + name, "inside this checkout", args=["O=" + name])

    def test_unknown_target(self):
        self.refused("nonsense", args=["nonsense"])

    def test_path_with_space(self):
        self.refused("has a space", "move the checkout", cwd=self.elsewhere("a b"))

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody else")
    def test_unwritable(self):
        self.refused("may not be written", "a clone of your own", cwd=self.elsewhere("root"), before=NOBODY)


class Rules(unittest.TestCase):
    def test_help_names_targets(self):
        """Each target in the help is a rule."""
        status, out = make("help")
        self.assertEqual(status, 0, out)
        targets = re.findall(r"^make ([a-z-]+)", out, re.M)
        self.assertGreaterEqual(set(targets), {"demo", "check", "modules", "install", "clean"})
        status, database = make("-pnq", "help")
        rules = set(re.findall(r"(?m)^([\w-]+):", database))
        self.assertEqual([target for target in targets if target not in rules], [])

    def plan(self, *args):
        status, out = make("-n", *args, *PIECES)
        self.assertEqual(status, 0, out)
        return steps(out)

    @unittest.skipUnless(HAS_GUEST, "the drivers are not built")
    def test_nothing_twice(self):
        """Files that make check has just built are not built again."""
        self.assertEqual(self.plan(), [], "make has something left to do")

    @unittest.skipUnless(HAS_GUEST, "the drivers are not built")
    def test_header_rebuilds(self):
        """A header of the interface is a prerequisite of all files that include it."""
        headers = [os.path.join("include/ornic", n) for n in sorted(os.listdir(os.path.join(TOP, "include/ornic")))]
        self.assertTrue(headers)
        for header in headers:
            plan = self.plan("-W", header)
            for sign in ("  CC ", "  KBUILD ", "libornic-rdmav"):
                self.assertIn(sign, "\n".join(plan), header)

    @unittest.skipUnless(HAS_GUEST, "the drivers are not built")
    def test_driver_rebuilds(self):
        """A change of a driver file rebuilds the modules, those of the tests too, and nothing else."""
        plan = self.plan("-W", "drivers/infiniband/hw/ornic/Makefile", KTEST)
        self.assertEqual([(line.split()[0], os.path.basename(line)) for line in plan],
                         [("KBUILD", "ornic.ko"), ("KBUILD", "ornic_ktest.ko")])


class WithoutRoot(unittest.TestCase):
    """What CONTRIBUTING.md promises to a user who is not root."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="ornic-make-")
        cls.addClassCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        cls.clone = os.path.join(folder, "clone")
        shutil.copytree(TOP, cls.clone, symlinks=True, ignore=lambda at, names: [n for n in names if at == TOP and
                                                                                 (n == ".git" or n.startswith("build"))])
        os.chmod(cls.clone, 0o777)

    def test_tree(self):
        """The tests of the tree need neither drivers nor provider, which only root can build the first time."""
        status, out = make("-n", "check", "T=tree", cwd=self.clone, before=AS_NOBODY)
        self.assertEqual(status, 0, out[-2000:])
        self.assertIn("selftests/run  tree", out.splitlines()[-1])
        self.assertEqual([line for line in out.splitlines() if "buildroot-run" in line], [])

    @unittest.skipUnless(AS_NOBODY, "the suite unit is this test, unless root runs it")
    def test_unit(self):
        """The unit tests of the daemon pass."""
        def run(path):
            return subprocess.run([*NOBODY, path], cwd=self.clone, capture_output=True, text=True, errors="replace")
        programs = [shutil.copy(path, self.clone) for path in glob.glob(os.path.join(program.BUILD, "selftests/unit/test_*"))
                    if os.path.isfile(path) and os.access(path, os.X_OK)]
        self.assertGreater(len(programs), 50)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for path, done in zip(programs, pool.map(run, programs)):
                self.assertEqual(done.returncode, 0, os.path.basename(path) + ":\n" + done.stdout + done.stderr)


if __name__ == "__main__":
    tap.main()
