# SPDX-License-Identifier: GPL-2.0
"""Sequence numbers without a wrap, of which a PSN has the lower 24 bits (IBTA 9.7.2)."""
HALF = 1 << 23
MASK = (1 << 24) - 1


def near(psn, reference):
    """Return the sequence number closest to reference that has this PSN."""
    return reference + ((psn - reference + HALF) & MASK) - HALF


def packets(length, mtu):
    """Return the number of PSNs of a message."""
    return max(1, -(-length // mtu))
