# SPDX-License-Identifier: GPL-2.0
"""Lower bound of the time that has passed for a sender.

A sender without the processor is late. It is known to run only when it sends, so only a share of each silence counts.
"""
import bisect


class Clock:
    """share: longest part of a silence that counts, in ns."""

    def __init__(self, share):
        self.share = share
        self.numbers, self.times = [], []
        self.last = None

    def tick(self, number, ns):
        """Record that the sender ran when packet number passed."""
        passed = 0 if self.last is None else max(0, min(ns - self.last, self.share))
        self.times.append(passed + (self.times[-1] if self.times else 0))
        self.numbers.append(number)
        self.last = ns

    def at(self, number):
        """Return the sender's time in ns when a packet passed."""
        i = bisect.bisect_right(self.numbers, number)
        return self.times[i - 1] if i else 0
