#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Debian testing: the newest kernel and rdma-core. Arguments are patterns of pyverbs tests, see guest/test_pyverbs."""
import smoke

smoke.main("forky")
