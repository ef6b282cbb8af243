#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Soft-RoCE of Debian 12: kernel 6.1. The most significant tests; INTEROP=all: all tests."""
import peers

peers.use("bookworm")

# pylint: disable=wrong-import-position
import harness                                  # noqa: E402
import traffic                                  # noqa: E402
from storage import Nvme                        # noqa: E402, F401
from traffic import Tools                       # noqa: E402, F401

traffic.add(everything=peers.EVERYTHING)
if peers.EVERYTHING:
    from faulty import Networks                 # noqa: E402, F401
    from verbs import Data, DataIPv6, Errors    # noqa: E402, F401

if __name__ == "__main__":
    harness.main()
