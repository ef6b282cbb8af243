#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Soft-RoCE of Debian 13: kernel 6.12."""
import peers

peers.use("trixie")

# pylint: disable=wrong-import-position
import harness                                  # noqa: E402
import traffic                                  # noqa: E402
from faulty import Networks                     # noqa: E402, F401
from storage import Nvme                        # noqa: E402, F401
from traffic import Tools                       # noqa: E402, F401
from verbs import Data, DataIPv6, Errors, Newer # noqa: E402, F401

traffic.add(everything=True)

if __name__ == "__main__":
    harness.main()
