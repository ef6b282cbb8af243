#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The program of the tutorial (Documentation/tutorial): it prints what the tutorial shows."""
import os
import re

import harness

PORT = 18620
CHAPTER = os.path.join(harness.TOP, "Documentation", "tutorial", "index.rst")


def shown(end):
    """Return the output that the tutorial shows after the command of this end."""
    with open(CHAPTER, encoding="utf-8") as f:
        return re.search(r"(?m)^\t%s\$ \./rc_hello.*\n((?:\t.*\n)+)" % end, f.read()).group(1).replace("\t", "")


class Tutorial(harness.GuestTest):
    def check(self, place):
        server, client = ("/tmp/selftests/rc_hello -d %s" % self.p.device_of(vm) for vm in self.ends(place))
        said = self.exchange(place, server, client + " {addr}", PORT)
        for end, text in zip(("client", "server"), said):
            numbers = re.compile("0x[0-9a-f]{6}")
            self.assertEqual(numbers.sub("QPN", text), numbers.sub("QPN", shown(end)), end)


harness.matrix(Tutorial, rc_hello=())

if __name__ == "__main__":
    harness.main()
