#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The checks of selftests/proxy/rules.py can fail: each runs with a driver that follows the rule and with one that breaks it."""
import os
import sys
import types
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "proxy")]
sys.dont_write_bytecode = True

import tap                                                      # noqa: E402
from interface import c, pack, size, structures, unpack         # noqa: E402
from memory import Memory, Shared, Unreachable, pages           # noqa: E402
from rings import ARM, HOST_INDEX, NOTIFY, Arm, Made, Taken     # noqa: E402
from rules import CQ, PD, Rules                                 # noqa: E402

BASE = 1 << 32
RING, RECORD, LIST, INPUT, EMPTY = range(BASE, BASE + 0x50000, 0x10000)
LOG = 4


class Driver(unittest.TestCase):
    """A driver's memory and actions."""

    def setUp(self):
        shared = Shared(BASE, 1 << 20)
        self.memory = Memory()
        self.memory.add(BASE, shared.size, shared.fd, 0)
        os.close(shared.fd)
        self.addCleanup(self.memory.remove, 0, 0)
        self.memory.set_word(RECORD + NOTIFY, c.ORNIC_NOTIFY_ALWAYS)
        self.rules = Rules()
        self.ids = 0

    def assertBroken(self, clause):
        """Check that this clause was broken since the last call, and no other."""
        broken, self.rules.broken = self.rules.broken, []
        self.assertEqual({text.split(":")[0] for text in broken}, {clause})

    def assertKept(self, clause):
        self.assertEqual(self.rules.broken, [])
        self.assertGreater(self.rules.tried[clause], 0)

    def command(self, opcode, name=None, number=0, cmd_id=None, **fields):
        """Submit a command; field names have two underscores for a dot."""
        self.ids += 1
        payload = pack(name, {path.replace("__", "."): value for path, value in fields.items()}) if name else b""
        command = types.SimpleNamespace(opcode=opcode, payload=payload, completion=None, input=lambda layout: unpack(layout, payload))
        command.fields = {"cmd_id": self.ids if cmd_id is None else cmd_id, "number": number, "in_len": len(payload), "in_addr": INPUT}
        self.memory.write(INPUT, payload)
        self.rules.command(self.memory, command)
        return command

    def complete(self, command, number=0, status=c.ORNIC_ST_OK):
        command.completion = {"status": status, "number": number}
        self.rules.completed(self.memory, command)

    def create(self, opcode, name, number, **fields):
        self.complete(self.command(opcode, name, **fields), number)

    def ring(self, kind=Made):
        return kind(self.memory, RING, RECORD, LOG)

    def enable(self):
        self.rules.register_write(c.ORNIC_REG_CONTROL, 4, c.ORNIC_CTL_ENABLE)
        self.rules.enable(self.memory, self.ring(), self.ring())

    def cq(self, **more):
        """Create the objects that a CQ needs, then CQ 5."""
        self.create(c.ORNIC_OP_EQ_CREATE, "ornic_eq_create_cmd", 0, pages__addr=EMPTY)
        return self.command(c.ORNIC_OP_CQ_CREATE, "ornic_cq_create_cmd", log_entries=LOG, record=RECORD, **more)


class Registers(Driver):
    def test_reads(self):
        self.enable()
        self.rules.register_read(c.ORNIC_REG_STATUS, 0)
        self.rules.register_read(c.ORNIC_REG_STATUS, c.ORNIC_STS_READY)
        self.rules.register_read(c.ORNIC_REG_MAGIC, c.ORNIC_MAGIC)
        self.assertKept("ORN-PCI-3")
        self.rules.register_read(c.ORNIC_REG_STATUS, c.ORNIC_STS_READY)
        self.assertBroken("ORN-PCI-3")
        self.rules.given_up = True
        self.rules.register_read(c.ORNIC_REG_STATUS, c.ORNIC_STS_READY)
        self.assertKept("ORN-PCI-3")
        self.rules.register_write(c.ORNIC_REG_CONTROL, 4, c.ORNIC_REASON_SHUTDOWN << c.ORNIC_CTL_REASON_SHIFT)
        self.rules.register_read(c.ORNIC_REG_STATUS, 0)
        self.assertKept("ORN-PCI-3")
        self.rules.register_read(c.ORNIC_REG_CLOCK, 0)
        self.assertBroken("ORN-CLK-4")

    def test_reasons(self):
        self.rules.register_write(c.ORNIC_REG_CONTROL, 4, c.ORNIC_CTL_RESET)
        for value in (c.ORNIC_CTL_RESET, 0, 77 << c.ORNIC_CTL_REASON_SHIFT):
            self.enable()
            self.rules.register_write(c.ORNIC_REG_CONTROL, 4, value)
            self.assertBroken("ORN-CTL-6")

    def test_width(self):
        self.rules.doorbell(self.rules.db_offset + 0x3000, 8)
        self.rules.register_write(c.ORNIC_REG_ASQ_ADDR, 8, BASE)
        self.assertKept("ORN-GEN-1")
        for at, count in ((0, 4), (8, 8), (0x800, 8)):
            self.rules.doorbell(self.rules.db_offset + at, count)
            self.assertBroken("ORN-GEN-1")
        self.rules.register_write(c.ORNIC_REG_ASQ_ADDR, 4, BASE)
        self.assertBroken("ORN-GEN-1")

    def test_stride(self):
        """Every stride of CONTROL is valid for pages of 4096 bytes; a host with larger pages breaks the rule."""
        import rules
        self.enable()
        self.assertKept("ORN-DB-8")
        rules.PAGE_SHIFT, old = 16, rules.PAGE_SHIFT
        self.addCleanup(setattr, rules, "PAGE_SHIFT", old)
        self.enable()
        self.assertBroken("ORN-DB-8")

    def test_admin_rings(self):
        self.enable()
        self.assertKept("ORN-RNG-16")
        self.memory.write(RING + 77, b"\1")
        self.enable()
        self.assertBroken("ORN-RNG-16")
        self.memory.write(RING + 77, b"\0")
        self.memory.set_word(RECORD + NOTIFY, 0)
        self.enable()
        self.assertBroken("ORN-RNG-4")


class Arming(Driver):
    WORD = 1 << c.ORNIC_ARM_SN_SHIFT | c.ORNIC_ARM_ANY << c.ORNIC_ARM_TYPE_SHIFT

    def eq(self, index, stored):
        self.memory.set_word(RECORD + HOST_INDEX, stored)
        self.rules.eq_armed(0, self.ring(), self.WORD + index)

    def test_event_queue(self):
        for index in (0, 4, 4, 8):
            self.eq(index, index)
        self.eq(8, 12)                          # the driver has continued
        self.assertKept("ORN-RNG-34")
        self.eq(10, 9)
        self.assertBroken("ORN-RNG-34")

    def test_batch(self):
        self.eq(0, 0)
        self.assertKept("ORN-RNG-13")
        self.eq(5, 5)
        self.assertBroken("ORN-RNG-13")

    def test_wraps(self):
        self.eq(0xfffffe, 0xfffffffe)
        self.eq(1, 1)
        self.assertKept("ORN-RNG-34")

    def test_type(self):
        solicited = 2 << c.ORNIC_ARM_SN_SHIFT | c.ORNIC_ARM_SOLICITED << c.ORNIC_ARM_TYPE_SHIFT
        self.rules.acq_armed(self.ring(), self.WORD, 0)
        self.rules.acq_armed(self.ring(), self.WORD, 0)
        self.rules.acq_armed(self.ring(), solicited, 1)
        self.assertKept("ORN-RNG-30")
        self.rules.acq_armed(self.ring(), self.WORD + (1 << c.ORNIC_ARM_SN_SHIFT), 1)
        self.rules.acq_armed(self.ring(), solicited, 1)
        self.assertBroken("ORN-RNG-30")

    def test_serial(self):
        """The serial number counts no more events than there were; it is 1 before the first."""
        self.memory.set_word(RECORD + ARM, self.WORD)
        for events in (0, 1, 3, 16, 17):
            self.rules.acq_armed(self.ring(), self.WORD, events)
        self.assertKept("ORN-RNG-10")
        for events in (9, 15, 31):
            self.rules.acq_armed(self.ring(), self.WORD, events)
            self.assertBroken("ORN-RNG-10")

    def test_late_doorbell(self):
        """The record has a later arm, whose events the proxy has given: 12 of them look like a serial number 4 ahead."""
        self.memory.set_word(RECORD + ARM, self.WORD + (12 << c.ORNIC_ARM_SN_SHIFT))
        self.rules.acq_armed(self.ring(), self.WORD, 12)
        self.assertFalse(self.rules.broken)

    def test_completion_queue(self):
        self.enable()
        self.complete(self.cq(pages__addr=RING), 5)
        self.rules.cq_armed(self.memory, 5, self.WORD + 4)
        self.assertKept("ORN-RNG-13")
        self.rules.cq_armed(self.memory, 5, self.WORD + 5)
        self.assertBroken("ORN-RNG-13")


class Commands(Driver):
    def setUp(self):
        super().setUp()
        self.enable()

    def test_in_flight(self):
        asq = self.ring(Taken)
        self.memory.set_word(RECORD + HOST_INDEX, 6)
        self.rules.submitted(asq, 10)
        self.assertKept("ORN-ADM-17")
        self.rules.submitted(asq, 11)
        self.assertBroken("ORN-ADM-17")

    def test_ids(self):
        self.complete(self.command(c.ORNIC_OP_NOP, cmd_id=7))
        self.command(c.ORNIC_OP_NOP, cmd_id=7)
        self.assertKept("ORN-ADM-18")
        self.command(c.ORNIC_OP_NOP, cmd_id=7)
        self.assertBroken("ORN-ADM-18")

    def test_input(self):
        self.create(c.ORNIC_OP_EQ_CREATE, "ornic_eq_create_cmd", 0, pages__addr=EMPTY)
        self.assertKept("ORN-ADM-3")
        command = self.command(c.ORNIC_OP_EQ_CREATE, "ornic_eq_create_cmd", pages__addr=EMPTY)
        self.memory.write(INPUT + 50, b"\1")
        self.complete(command)
        self.assertBroken("ORN-ADM-3")

    def test_relies(self):
        command = self.command(c.ORNIC_OP_PD_CREATE)
        self.command(c.ORNIC_OP_KEY_CREATE, "ornic_key_create_cmd", pd=3)
        self.assertBroken("ORN-ADM-15")         # it cannot know the number yet
        self.complete(command, 3)
        self.create(c.ORNIC_OP_KEY_CREATE, "ornic_key_create_cmd", 0x100, pd=3)
        self.command(c.ORNIC_OP_KEY_QUERY, number=0x177)
        self.assertKept("ORN-ADM-15")
        destroy = self.command(c.ORNIC_OP_KEY_DESTROY, number=0x100)
        self.assertKept("ORN-ADM-15")
        self.command(c.ORNIC_OP_KEY_QUERY, number=0x100)
        self.assertBroken("ORN-ADM-15")         # its destroy command is in flight
        self.complete(destroy, status=c.ORNIC_ST_BUSY)
        self.command(c.ORNIC_OP_KEY_QUERY, number=0x100)
        self.assertKept("ORN-ADM-15")
        self.complete(self.command(c.ORNIC_OP_KEY_DESTROY, number=0x100))
        self.command(c.ORNIC_OP_KEY_QUERY, number=0x100)
        self.assertBroken("ORN-ADM-15")
        self.assertEqual(self.rules.objects, {(PD, 0, 3)})

    def test_number_given_twice(self):
        """A device that gives two objects the same number: the driver cannot know which of them it destroys."""
        for _ in range(2):
            self.create(c.ORNIC_OP_PD_CREATE, None, 7)
        for _ in range(2):
            self.complete(self.command(c.ORNIC_OP_PD_DESTROY, number=7))
        self.assertEqual(self.rules.broken, [])
        self.rules.reset()
        self.create(c.ORNIC_OP_PD_CREATE, None, 7)
        self.complete(self.command(c.ORNIC_OP_PD_DESTROY, number=7))
        self.command(c.ORNIC_OP_PD_DESTROY, number=7)
        self.assertBroken("ORN-ADM-15")

    def test_ring(self):
        self.complete(self.cq(pages__addr=RING), 5)
        self.assertIn((CQ, 0, 5), self.rules.objects)
        self.assertKept("ORN-RNG-16")
        self.memory.write(RING + 64 * 16 - 1, b"\1")
        self.cq(pages__addr=RING)
        self.assertBroken("ORN-RNG-16")

    def test_ring_in_pages(self):
        self.memory.write(LIST, (RING + 0x1000).to_bytes(8, "little") + (RING + 0x3000).to_bytes(8, "little"))
        place = {"pages__addr": LIST, "pages__offset": 0xe00, "pages__page_shift": 12, "pages__level": 1}
        self.cq(**place)
        self.assertKept("ORN-RNG-16")
        for at, broken in ((0x1dff, False), (0x1e00, True), (0x31ff, True), (0x3200, False)):
            self.memory.write(RING + at, b"\1")
            self.cq(**place)
            if broken:
                self.assertBroken("ORN-RNG-16")
            self.assertKept("ORN-RNG-16")
            self.memory.write(RING + at, b"\0")

    def test_privileged(self):
        for layout, opcode, flag in (("ornic_qp_create_cmd", c.ORNIC_OP_QP_CREATE, c.ORNIC_QP_F_PRIVILEGED),
                                     ("ornic_srq_create_cmd", c.ORNIC_OP_SRQ_CREATE, c.ORNIC_SRQ_F_PRIVILEGED)):
            self.command(opcode, layout, flags=flag)
            self.command(opcode, layout, dbpage=3)
            self.assertKept("ORN-SEC-11")
            self.command(opcode, layout, flags=flag, dbpage=3)
            self.assertBroken("ORN-SEC-11")

    def test_region(self):
        def region(**fields):
            self.command(c.ORNIC_OP_KEY_CREATE, "ornic_key_create_cmd", length=8192, **fields)
        region(iova=0x7f0123, pages__offset=0x123)
        region(iova=0x1234567, pages__offset=0x34567, pages__page_shift=20, pages__level=1)
        region(iova=0x7f0123, access=c.ORNIC_ACCESS_ZERO_BASED)
        self.assertKept("ORN-MEM-19")
        region(iova=0x7f0123, pages__offset=0x122)
        self.assertBroken("ORN-MEM-19")
        region(iova=0x1234567, pages__offset=0x567, pages__page_shift=20, pages__level=1)
        self.assertBroken("ORN-MEM-19")

    def test_device_memory(self):
        self.command(c.ORNIC_OP_DM_CREATE, "ornic_dm_create_cmd", bytes=8192, log_align=12)
        self.assertKept("ORN-DM-1")
        for fields in ({"bytes": 8191, "log_align": 12}, {"bytes": 8192, "log_align": 6}):
            self.command(c.ORNIC_OP_DM_CREATE, "ornic_dm_create_cmd", **fields)
            self.assertBroken("ORN-DM-1")

    def test_features(self):
        self.command(c.ORNIC_OP_SET_FEATURES, "ornic_features_cmd", features0=1 << c.ORNIC_F_DM | 1)
        self.assertKept("ORN-FEA-6")
        for fields in ({"features0": 1 << 63}, {"features1": 1}):
            self.command(c.ORNIC_OP_SET_FEATURES, "ornic_features_cmd", **fields)
            self.assertBroken("ORN-FEA-6")


class Instrument(Driver):
    """The proxy's own half of rings, its view of memory, its parser of the headers."""

    def test_laps(self):
        """One side consumes the entries that the other side produces, over several laps with the phase of each."""
        made, taken = self.ring(), self.ring(Taken)
        for i in range(100):
            made.put(bytes([i]) * 64)
            made.put(bytes([i + 100]) * 64)
            self.assertEqual([entry[0] for entry in taken.produced()], [i, i + 100])
        self.assertEqual(self.memory.word(RECORD + HOST_INDEX), 200)

    def test_full(self):
        made = self.ring()
        for _ in range(1 << LOG):
            self.assertTrue(made.room())
            made.put(bytes(64))
        self.assertFalse(made.room())

    def test_no_room(self):
        made, taken = self.ring(), self.ring(Taken)
        made.put(bytes(64))
        self.assertEqual(list(taken.produced(lambda: False)), [])
        self.assertEqual(len(list(taken.produced())), 1)

    def test_arm(self):
        self.memory.set_word(RECORD + ARM, 0x2a000003)
        arm = self.ring().arm()
        self.assertEqual((arm.type, arm.serial, arm.index), (c.ORNIC_ARM_ANY, 10, 3))
        self.assertEqual([Arm(word).covers(3) for word in (2, 3, 4)], [True, False, False])
        self.assertTrue(Arm(0xffffff).covers(0x5000000))

    def test_pages(self):
        leaf, top = LIST, LIST + 0x1000
        self.memory.write(leaf, b"".join((BASE + (i << 12)).to_bytes(8, "little") for i in range(512)))
        self.memory.write(top, leaf.to_bytes(8, "little"))
        found = pages(self.memory, {"addr": top, "offset": 100, "page_shift": 12, "level": 2}, 8192)
        self.assertEqual(found, [(BASE + 100, 3996), (BASE + 4096, 4096), (BASE + 8192, 100)])
        self.assertRaises(Unreachable, self.memory.read, BASE - 1, 2)

    def test_layouts(self):
        """The structures have the sizes and the offsets that the headers assert."""
        import re
        folder = os.path.join(HERE, "..", "..", "include", "ornic")
        asserted = 0
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                for struct, length in re.findall(r"ORNIC_ASSERT_SIZE\(struct (\w+), (\d+)\)", f.read()):
                    if struct in structures:
                        self.assertEqual(size(struct), int(length), struct)
                        asserted += 1
        self.assertEqual(asserted, len(structures))


if __name__ == "__main__":
    tap.main()
