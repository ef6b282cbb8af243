# SPDX-License-Identifier: GPL-2.0
"""How selftests/run runs the test programs and what it makes of what they say."""
