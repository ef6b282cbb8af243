#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Each fuzz target runs its seeds and then searches for new inputs, for FUZZ_TIME seconds (default: 20)."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import fuzzing  # noqa: E402
import tap      # noqa: E402

SECONDS = int(os.environ.get("FUZZ_TIME", "20"))


class Fuzz(unittest.TestCase):
    def finds_nothing(self, target):
        self.assertTrue(os.path.exists(fuzzing.seeds(target)), "no seeds: selftests/fuzz/fuzz --seeds %s makes them" % target)
        folder = fuzzing.corpus(target, fresh=True)
        self.addCleanup(shutil.rmtree, folder)
        have = len(os.listdir(folder))
        status, said = fuzzing.run(target, "-max_total_time=%d" % SECONDS, folder)
        self.assertEqual(status, 0, "%s\nagain: %s" % (said[-6000:], fuzzing.again(said)))
        tried = fuzzing.number(said, "stat::number_of_executed_units")
        print("# %s: %d seeds, %d inputs, %d edges" % (target, have, tried, fuzzing.number(said, "cov")))
        self.assertGreaterEqual(tried, have)

    def test_sees_what_is_wrong(self):
        """A violated rule is a finding: a run that cannot fail proves nothing."""
        folder = tempfile.mkdtemp(prefix="ornic-fuzz-")
        self.addCleanup(shutil.rmtree, folder)              # with the sockets of programs that abort
        empty = os.path.join(folder, "empty")
        with open(empty, "wb"):
            pass
        for target, what in ((t, w) for t in fuzzing.targets() for w in ("memory", "pool", "innocent")):
            done = subprocess.run([fuzzing.program(target), empty],
                                  env={**os.environ, "FUZZ_BREAK": what, "TMPDIR": folder},
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
            self.assertNotEqual(done.returncode, 0, "%s does not mind: %s" % (target, what))
            self.assertIn("not so: ", done.stderr, "%s, %s" % (target, what))


def add(target):
    setattr(Fuzz, "test_" + target, lambda self: self.finds_nothing(target))


for name in fuzzing.targets():
    add(name)

if __name__ == "__main__":
    tap.main()
