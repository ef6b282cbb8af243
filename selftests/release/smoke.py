# SPDX-License-Identifier: GPL-2.0
"""The drivers and the provider on other kernels and rdma-core releases than most tests use: loading, ping, tools of that
release between two VMs, and its pyverbs tests. Each file of this suite names a guest."""
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
for folder in ("guest", "lib", "pyverbs"):
    sys.path.insert(0, os.path.join(HERE, "..", folder))
sys.dont_write_bytecode = True


def main(guest):
    """Run all of it in separate VMs; exit with 1 if a test failed."""
    os.environ["GUEST"] = guest
    os.environ.pop("ORNIC_TEST_LAB", None)
    import tools            # they read the environment when they are loaded
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
