# SPDX-License-Identifier: GPL-2.0
"""Programs that report by their exit status, as unittest cases."""
import os
import subprocess
import sys

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ.get("O", os.path.join(TOP, "build"))


def check(case, *command, **options):
    """Fail the case with the command's output, unless its status is 0; return the output."""
    done = subprocess.run(command, cwd=TOP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", **options)
    case.assertEqual(done.returncode, 0, done.stdout)
    for line in done.stdout.splitlines():
        print("# " + line)
    sys.stdout.flush()
    return done.stdout
