#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""rdma-core's tests of verbs on one device; permitted skips are in selftests/pyverbs/skips.toml.

Arguments are patterns of tests: test_srq.SrqTestCase.test_rc_srq_traffic, or '*srq*'. With ORNIC_TEST_LAB=NAME they run in the
lab that `lab up 2 --name NAME` made. Tests draw random attributes: ORNIC_TEST_SEED draws others.
"""
import os
import sys

import harness

sys.path.insert(0, os.path.join(harness.TOP, "selftests", "pyverbs"))

import suite  # noqa: E402

if __name__ == "__main__":
    sys.exit(1 if suite.main(harness.pair(), harness.GUEST, sys.argv[1:]) else 0)
