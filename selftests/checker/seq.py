# SPDX-License-Identifier: GPL-2.0
"""Sequence numbers without an end, of which a PSN has the lower 24 bits (IBTA 9.7.2)."""
HALF = 1 << 23
MASK = (1 << 24) - 1


def near(psn, reference):
    """The sequence number closest to reference that has this PSN."""
    return reference + ((psn - reference + HALF) & MASK) - HALF


def packets(length, mtu):
    """PSNs that a message takes."""
    return max(1, -(-length // mtu))
