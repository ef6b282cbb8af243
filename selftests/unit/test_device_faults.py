#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The faults that make device-faults chooses and injects: a proxy without a device provides commands and events."""
import os
import sys
import threading
import types
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", folder) for folder in ("lib", "proxy", "device_faults")]
sys.dont_write_bytecode = True

import tap                                              # noqa: E402
from faults import EVENT_FAULTS, TYPE, FaultPlan, Liar, sent_by_drivers      # noqa: E402
from interface import c, pack, size, unpack             # noqa: E402
from proxy import Lies                                  # noqa: E402


class Device:
    """The part of a proxy that Liar uses."""

    def __init__(self):
        self.lies, self.lock, self.asq, self.bus_master = Lies(), threading.RLock(), None, False
        self.given, self.commands, self.written = [], [], {}
        self.memory = types.SimpleNamespace(write=self.written.__setitem__)

    def complete(self, command):
        self.given.append(command.completion["status"])

    def put_completion(self, fields):
        self.given.append(fields["status"])

    def give(self, command):
        self.given.append(command)


class Faults(unittest.TestCase):
    def liar(self, *only, timeout=0.01):
        self.device = Device()
        self.plan = FaultPlan(1, only)
        liar = Liar(self.device, self.plan, timeout, 0)
        self.addCleanup(liar.end)
        return liar

    def command(self, opcode, out_len=0, **page):
        fields = {"opcode": opcode, "cmd_id": 7, "out_len": out_len, "out_addr": 0x1000}
        self.last = types.SimpleNamespace(opcode=opcode, fields=fields, completion=None, input=lambda name: page, times=1)
        return self.last

    def ended(self, fault):
        """Return the fate of a PD_CREATE: whether the device gets it, whether the driver gets its completion, the completion."""
        self.liar("PD_CREATE/" + fault)
        command = self.command(c.ORNIC_OP_PD_CREATE)
        if not self.device.lies.on_command(command):
            return False, False, command.completion
        completion = {**unpack("ornic_admin_cpl", b""), "opcode": command.opcode, "number": 5}
        return True, self.device.lies.on_completion(command, completion), completion

    def test_commands(self):
        self.assertEqual(self.ended("lost"), (False, False, None))
        self.assertEqual(self.ended("status-13")[2]["status"], 13)
        self.assertEqual(self.device.given, [13])
        self.assertEqual(self.ended("done-8")[:2], (True, True))
        self.assertEqual(self.ended("done-8")[2]["status"], 8)
        self.assertEqual(self.ended("number-other")[2]["number"], 6)
        self.assertNotEqual(self.ended("opcode")[2]["opcode"], c.ORNIC_OP_PD_CREATE)
        self.assertEqual(self.ended("done-8")[:2] + (self.last.times,), (True, True, 1))
        self.assertEqual(self.ended("twice")[:2] + (self.last.times,), (True, True, 2))

    def test_late(self):
        """The delay of a held completion begins when the device has the command."""
        self.assertEqual(self.ended("late")[:2], (True, False))
        for timer in threading.enumerate():
            if isinstance(timer, threading.Timer):
                timer.join(5)
        self.assertEqual(len(self.device.given), 1)

    def test_outputs(self):
        self.liar("STAT_READ/output-1")
        command = self.command(c.ORNIC_OP_STAT_READ, 64)
        self.assertTrue(self.device.lies.on_command(command))
        self.device.lies.on_completion(command, unpack("ornic_admin_cpl", b""))
        self.assertEqual(self.device.written, {0x1000: b"\xff" * 64})

    def test_identify(self):
        liar = self.liar("identify_device.max_qp/0xffffffff")
        command = self.command(c.ORNIC_OP_IDENTIFY, size("ornic_identify_device"), page=c.ORNIC_ID_DEVICE)
        while not self.device.written:
            self.device.lies.on_completion(command, unpack("ornic_admin_cpl", b""))
        at, _, _ = liar.values["identify_device.max_qp/0xffffffff"]
        self.assertEqual(self.device.written, {0x1000 + at: b"\xff" * 4})

    def test_events(self):
        for kind in (c.ORNIC_EV_COMPLETION, c.ORNIC_EV_ADMIN):
            event = pack("ornic_eqe", {"type": kind, "number": 3})
            for fault, count in (("dropped", 0), ("doubled", 2), ("other-type", 1), ("other-number", 1), ("ones", 2)):
                liar = self.liar("*/" + fault)
                given = self.device.lies.on_event(0, event)
                self.assertEqual(len(given), count)
                self.assertEqual(liar.missing, kind == c.ORNIC_EV_COMPLETION and fault not in ("doubled", "ones"))
                self.assertEqual(fault == "other-type", bool(given) and given[-1][TYPE] != kind)

    def test_coverage(self):
        """Each fault once, none twice; faults of an earlier run are not repeated."""
        plan = FaultPlan(1, done={"EV_ADMIN/ones": 1})
        plan.learn("EV_ADMIN", ["EV_ADMIN/" + fault for fault in EVENT_FAULTS])
        seen = []
        while name := plan.next("EV_ADMIN"):
            plan.did(name)
            seen.append(name)
        self.assertEqual(len(seen), len(set(seen)))
        self.assertNotIn("EV_ADMIN/ones", seen)
        self.assertEqual(plan.coverage("EV_ADMIN"), (len(EVENT_FAULTS), len(EVENT_FAULTS)))

    def test_fair(self):
        """Of two commands, the one with fewer faults so far is chosen far more often."""
        plan = FaultPlan(1)
        for group in "AB":
            plan.learn(group, ["%s/%d" % (group, i) for i in range(20)])
        for i in range(10):
            plan.did("A/%d" % i)
        chosen = [sum(plan.fair(group, "AB") for _ in range(300)) for group in "AB"]
        self.assertLess(5 * chosen[0], chosen[1])
        self.assertTrue(chosen[0])

    def test_drivers_send(self):
        self.assertIn("COUNTER_CREATE", sent_by_drivers())
        self.assertNotIn("NOP", sent_by_drivers())


if __name__ == "__main__":
    tap.main()
