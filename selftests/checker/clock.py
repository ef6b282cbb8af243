# SPDX-License-Identifier: GPL-2.0
"""Time that has certainly passed for somebody.

Who does not get the processor, or is stopped, does nothing, and is late with all of it. What shows that it runs is what it sends: of
a silence no more than a share counts.
"""
import bisect


class Clock:
    """share: ns of a silence that count."""

    def __init__(self, share):
        self.share = share
        self.numbers, self.times = [], []
        self.last = None

    def tick(self, number, ns):
        """Packet number shows that it runs."""
        passed = 0 if self.last is None else max(0, min(ns - self.last, self.share))
        self.times.append(passed + (self.times[-1] if self.times else 0))
        self.numbers.append(number)
        self.last = ns

    def at(self, number):
        """ns, when a packet passed."""
        i = bisect.bisect_right(self.numbers, number)
        return self.times[i - 1] if i else 0
