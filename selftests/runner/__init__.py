# SPDX-License-Identifier: GPL-2.0
"""The parts of selftests/run: running the test programs and evaluating their output."""
