# SPDX-License-Identifier: GPL-2.0
"""The drivers and the provider on another kernel and rdma-core than most tests use: load, ping, what the tools of that release do
between two VMs, and that release's pyverbs tests. The files of this suite each name a guest.
"""
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
for folder in ("guest", "lib", "pyverbs"):
    sys.path.insert(0, os.path.join(HERE, "..", folder))
sys.dont_write_bytecode = True


def main(guest):
    """Runs it all in VMs of their own; exits with 1 if something failed."""
    os.environ["GUEST"] = guest
    os.environ.pop("ORNIC_TEST_LAB", None)
    import tools            # they look at the environment when they are loaded
    import harness
    import suite
    import tap
    chosen, sys.argv[1:] = sys.argv[1:], []
    bad = 0
    if not chosen:
        try:
            tap.main(tools.__name__)
        except SystemExit as end:
            bad = end.code
    bad += suite.main(harness.pair(), guest, chosen)
    sys.exit(1 if bad else 0)
