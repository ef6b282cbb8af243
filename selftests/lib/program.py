# SPDX-License-Identifier: GPL-2.0
"""Run a program within a unittest case and check its exit status."""
import os
import subprocess
import sys

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ.get("O", os.path.join(TOP, "build"))


def check(case, *command, **options):
    """Run a command. Fail the case with the output if the status is not 0; otherwise print the output as TAP comments and return it."""
    done = subprocess.run(command, cwd=TOP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", **options)
    case.assertEqual(done.returncode, 0, done.stdout)
    for line in done.stdout.splitlines():
        print("# " + line)
    sys.stdout.flush()
    return done.stdout
