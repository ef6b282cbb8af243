# SPDX-License-Identifier: GPL-2.0
"""Commands of a series' in-root, run in the root of a base on sources with the patches."""
import os
import shutil
import subprocess
import sys
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
for folder in ("tools", "tools/series", "selftests/lib"):
    sys.path.insert(0, os.path.join(TOP, folder))
sys.dont_write_bytecode = True

import series  # noqa: E402

LAB = os.path.join(TOP, "tools", "lab", "lab")
BUILT = os.path.realpath(os.environ.get("O", os.path.join(TOP, "build")))
BUILD = os.path.join(BUILT, "series")
KERNELS = ("7.2", "6.12")
EVERYTHING = "--all" in sys.argv
sys.argv = [a for a in sys.argv if a != "--all"]


class Rooted(unittest.TestCase):
    objects = "objects-"

    def inside(self, kind, base, *command):
        """Run a command of the series' in-root; its output."""
        script = os.path.join(TOP, "tools", "series", kind, "in-root")
        done = subprocess.run([LAB, "source-run", base, os.path.join(BUILD, "changes-" + base), "--", script, command[0],
                               os.path.join(BUILD, base), os.path.join(BUILD, self.objects + base), *command[1:]],
                              cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])
        return done.stdout

    def source(self, base):
        """The source of a base, unchanged."""
        done = subprocess.run([LAB, "source-path", base], stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0)
        return done.stdout.strip()

    def fresh(self, kind, base):
        """Patches made, source unchanged."""
        names = series.make(kind, self.source(base), os.path.join(BUILD, base))
        shutil.rmtree(os.path.join(BUILD, "changes-" + base), ignore_errors=True)
        return names
