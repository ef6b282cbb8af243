#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Debian 12: kernel 6.1, rdma-core 44. Arguments are patterns of pyverbs tests, see guest/test_pyverbs."""
import smoke

smoke.main("bookworm")
