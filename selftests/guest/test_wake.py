#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""No doorbell is lost (ORN-RNG-5, ORN-GEN-5): a daemon that falls asleep at once, and guests of one processor.

This needs a separate lab: with the usual polling time, the race would hardly ever happen; here it is tried thousands of times
per second. The test once found a fence that had no effect under emulation.
"""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "..", "tools")]

from lab.topology import Lab    # noqa: E402
import tap                      # noqa: E402

ADDRESS = "10.88.0.2"
PORT = 18515
PATIENCE = 120


class Wake(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Lab.up(2, name="wake-%d" % os.getpid(), smp=1, ornicd_args=["--spin-us", "0"])

    @classmethod
    def tearDownClass(cls):
        cls.lab.down()

    def race(self, program, options):
        there, here = self.lab.vm(1), self.lab.vm(0)
        command = "%s -d ornic0 -F -p %d %s" % (program, PORT, options)
        server = there.spawn(command, timeout=PATIENCE)
        there.wait_listen(PORT)
        result = here.run("%s %s" % (command, ADDRESS), timeout=PATIENCE, check=False)
        self.assertEqual(result.rc, 0, "%s: %s\n%s" % (program, result.out[-500:], self.lab.log()[-500:]))
        self.assertEqual(server.wait(PATIENCE), 0)

    def test_write_bw(self):
        for _ in range(3):
            self.race("ib_write_bw", "-s 64 -n 50000")

    def test_send_bw(self):
        self.race("ib_send_bw", "-s 64 -n 20000")

    def test_write_lat(self):
        self.race("ib_write_lat", "-s 2 -n 5000")

    def test_send_lat_events(self):
        self.race("ib_send_lat", "-s 2 -n 2000 -e")


if __name__ == "__main__":
    tap.main()
