#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The checker of captures: traffic that follows the rules passes, and each rule has a capture that breaks only this rule.

A capture is written as a list of packets between two devices, A (vm1) and B (vm2): what the one sends the other gets, unless it is
lost, after which time has passed or has not.
"""
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..")]

from checker import judge, pcapng, roce, rules, seq   # noqa: E402
import tap  # noqa: E402

ADDRESS = {"A": "10.0.0.1", "B": "10.0.0.2"}
PORT = {"A": "vm1", "B": "vm2"}
QPN = {"A": 0x11, "B": 0x22}
MTU = 256
FIRST_PSN = 0xfffffe        # soon around the end
ACK, RNR, NAK = 0x1f, 0x20 | 12, 0x60
RNR_US = 640                # of that code


class Wire:
    """The packets between A and B, in a capture; far: the one that is not a device of the daemon."""

    def __init__(self, far=None):
        self.out = pcapng.Writer()
        self.port = dict(PORT, **({far: "lan"} if far else {}))
        for name in self.port.values():
            self.out.interface(name)
        self.ns = 1700000000 * 10 ** 9

    def wait(self, us):
        self.ns += us * 1000

    def put(self, frm, data, sent=True, got=True, comment=None):
        to = "B" if frm == "A" else "A"
        if sent:
            self.out.packet(self.port[frm], self.ns, True, data, comment)
        if got:
            self.out.packet(self.port[to], self.ns, False, data)

    def frame(self, frm, op, psn, payload=b"", **fields):
        to = "B" if frm == "A" else "A"
        return roce.build(ADDRESS[frm], ADDRESS[to], op, QPN[to], psn + FIRST_PSN & seq.MASK, payload, **fields)

    def send(self, op, psn, payload=b"", lost=False, frm="A", **fields):
        fields.setdefault("ackreq", op not in roce.FIRST and op not in roce.MIDDLE)
        self.put(frm, self.frame(frm, op, psn, payload, **fields), got=not lost)

    def answer(self, psn, msn, syndrome=ACK, op=roce.ACK, payload=b"", lost=False, frm="B", **fields):
        self.put(frm, self.frame(frm, op, psn, payload, aeth=syndrome << 24 | msn, **fields), got=not lost)

    def report(self, **options):
        with tempfile.NamedTemporaryFile(suffix=".pcapng") as file:
            self.out.save(file.name)
            return judge.judge(file.name, judge.Options(**options))


def message(wire, psn, count, **more):
    """A SEND of count packets."""
    ops = [roce.SEND_ONLY] if count == 1 else [roce.SEND_FIRST] + [roce.SEND_MIDDLE] * (count - 2) + [roce.SEND_LAST]
    for i, op in enumerate(ops):
        wire.send(op, psn + i, bytes(MTU if i < count - 1 else 5), **more)


def read(wire, psn, count, **more):
    """A READ whose response has so many packets."""
    wire.send(roce.READ_REQUEST, psn, va=0x1000, rkey=7, dmalen=(count - 1) * MTU + 9, **more)


def response(wire, psn, count, msn, skip=0, **more):
    """The response to read(), from packet skip on."""
    for i in range(skip, count):
        first, last = i == skip, i == count - 1
        op = (roce.READ_RESP_ONLY if last else roce.READ_RESP_FIRST) if first else \
            (roce.READ_RESP_LAST if last else roce.READ_RESP_MIDDLE)
        wire.answer(psn + i, msn, op=op, payload=bytes(9 if last else MTU), **more)


class Checker(unittest.TestCase):
    def setUp(self):
        self.wire = Wire()

    def expect(self, *rules, **options):
        """Check that the capture breaks these rules and no other."""
        report = self.wire.report(**options)
        self.assertEqual(sorted({v.rule for v in report.violations}), sorted(rules), "\n".join(map(str, report.violations)))
        return report

    # ---- traffic that follows the rules ----

    def test_good(self):
        message(self.wire, 0, 3)
        self.wire.answer(2, 1)
        read(self.wire, 3, 3)
        response(self.wire, 3, 3, 2)
        self.wire.send(roce.FETCH_ADD, 6, va=0x1000, rkey=7, swap_add=1)
        self.wire.answer(6, 3, op=roce.ATOMIC_ACK, value=5)
        self.wire.send(roce.FLUSH, 7, va=0x1000, rkey=7, dmalen=64, feth=1)
        self.wire.answer(7, 4, op=roce.READ_RESP_ONLY)
        self.wire.send(roce.ATOMIC_WRITE, 8, bytes(8), va=0x1000, rkey=7, dmalen=8)
        self.wire.answer(8, 5, op=roce.READ_RESP_ONLY)
        counts = self.expect().counts
        self.assertEqual((counts["connections"], counts["requests"], counts["frames"]), (1, 7, 28))

    def test_both_directions(self):
        message(self.wire, 0, 2)
        message(self.wire, 100, 2, frm="B")
        self.wire.answer(101, 1, frm="A")
        self.wire.answer(1, 1)
        self.expect()

    def test_loss_reported(self):
        message(self.wire, 0, 1)
        self.wire.answer(0, 1)
        message(self.wire, 1, 1, lost=True)
        message(self.wire, 2, 1)
        message(self.wire, 3, 1)
        self.wire.answer(1, 1, NAK)
        for psn in (1, 2, 3):
            message(self.wire, psn, 1)
            self.wire.answer(psn, psn + 1)
        counts = self.expect().counts
        self.assertEqual((counts["NAKs"], counts["gaps"], counts["go-backs"], counts["resends"]), (1, 2, 1, 3))

    def test_ack_lost_and_timeout(self):
        message(self.wire, 0, 2)
        self.wire.answer(1, 1, lost=True)
        self.wire.wait(70000)
        message(self.wire, 0, 2)
        self.wire.answer(1, 1)
        counts = self.expect(timeout_ns=4096 << 14).counts
        self.assertEqual((counts["timeouts"], counts["duplicates"]), (1, 2))

    def test_rest_of_a_read(self):
        read(self.wire, 0, 4)
        message(self.wire, 4, 1)
        for i, (op, lost) in enumerate(((roce.READ_RESP_FIRST, False), (roce.READ_RESP_MIDDLE, False),
                                        (roce.READ_RESP_MIDDLE, True), (roce.READ_RESP_LAST, False))):
            self.wire.answer(i, 1, op=op, payload=bytes(9 if i == 3 else MTU), lost=lost)
        self.wire.answer(4, 2)
        self.wire.send(roce.READ_REQUEST, 2, va=0x1000 + 2 * MTU, rkey=7, dmalen=MTU + 9)
        response(self.wire, 0, 4, 1, skip=2)
        message(self.wire, 4, 1)
        self.wire.answer(4, 2)
        counts = self.expect().counts
        self.assertEqual(counts["implied NAKs"], 2)    # the LAST packet says so, and the ACK behind it

    def test_receiver_not_ready(self):
        message(self.wire, 0, 1)
        message(self.wire, 1, 1)
        self.wire.answer(0, 0, RNR)
        self.wire.wait(RNR_US)
        for psn in (0, 1):
            message(self.wire, psn, 1)
            self.wire.answer(psn, psn + 1)
        self.assertEqual(self.expect().counts["RNR NAKs"], 1)

    def test_error(self):
        read(self.wire, 0, 1)
        self.wire.answer(0, 0, NAK | 2)
        self.expect()

    def test_fault_records(self):
        """A frame delayed by a rule counts as sent once; a frame dropped by a rule counts as sent, not as received."""
        data = self.wire.frame("A", roce.SEND_ONLY, 0, ackreq=True)
        self.wire.put("A", data, got=False)
        self.wire.put("A", data, got=False, comment="delayed by fault rule 1: delay by=2ms")
        self.wire.wait(2000)
        self.wire.put("A", data, comment="forwarded")
        self.wire.answer(0, 1)
        data = self.wire.frame("A", roce.SEND_ONLY, 1, bytes(5), ackreq=True)
        self.wire.put("A", data, got=False)
        self.wire.put("A", data, got=False, comment="dropped by fault rule 2: drop nth=2")
        message(self.wire, 2, 1)
        self.wire.answer(1, 1, NAK)
        message(self.wire, 1, 1)
        self.wire.answer(1, 2)
        message(self.wire, 2, 1)
        self.wire.answer(2, 3)
        self.expect()

    def test_lost_on_its_way(self):
        """A frame lost in the switch was sent once; a frame rejected behind a port did not arrive."""
        for far, port, inbound, got, comment in ((None, "vm1", True, False, "dropped: link down"),
                                                 (None, "vm2", False, False, "dropped: another VLAN"),
                                                 ("B", "lan", False, True, "dropped: rejected by the interface or socket")):
            self.wire = Wire(far=far)
            data = self.wire.frame("A", roce.SEND_ONLY, 0, bytes(5), ackreq=True)
            self.wire.put("A", data, got=got)
            self.wire.out.packet(port, self.wire.ns, inbound, data, comment)
            message(self.wire, 1, 1)
            self.wire.answer(0, 0, NAK)
            for psn in (0, 1):
                message(self.wire, psn, 1)
                self.wire.answer(psn, psn + 1)
            self.assertEqual(self.expect().counts["gaps"], 1, comment)

    def test_damaged(self):
        """A frame damaged by a rule counts as sent in its original form."""
        data = self.wire.frame("A", roce.SEND_ONLY, 0, bytes(5), ackreq=True)
        damaged = data[:-8] + b"\1" + data[-7:]
        self.wire.put("A", data, got=False)
        self.wire.put("A", damaged, got=False, comment="corrupted by fault rule 1: corrupt nth=1")
        self.wire.put("A", damaged, comment="forwarded")
        message(self.wire, 1, 1)
        self.wire.answer(0, 0, NAK)
        message(self.wire, 0, 1)
        self.wire.answer(0, 1)
        message(self.wire, 1, 1)
        self.wire.answer(1, 2)
        self.assertEqual(self.expect().counts["damaged frames"], 2)

    def test_sent_again_before_it_goes_on(self):
        """A frame held by a rule and its retransmission meanwhile are two frames."""
        data = self.wire.frame("A", roce.SEND_ONLY, 0, ackreq=True)
        self.wire.put("A", data, got=False)
        self.wire.put("A", data, got=False, comment="held back by fault rule 1: reorder nth=1 by=2")
        message(self.wire, 1, 1)
        self.wire.answer(0, 0, NAK)
        self.wire.put("A", data)
        self.wire.put("A", data, sent=False)
        self.wire.put("A", data, comment="forwarded", got=False)
        self.wire.answer(0, 1)
        message(self.wire, 1, 1)
        self.wire.answer(1, 2)
        self.expect()

    def test_nak_of_what_is_next_anyway(self):
        """During the retransmission that an earlier NAK requested, the next NAK names the PSN that the requester has reached."""
        for psn in (0, 1):
            message(self.wire, psn, 1, lost=True)
        late = self.wire.frame("A", roce.SEND_ONLY, 2, bytes(5), ackreq=True)
        self.wire.put("A", late, got=False)
        message(self.wire, 3, 1)
        self.wire.answer(0, 0, NAK)
        message(self.wire, 0, 1)
        self.wire.answer(0, 1)
        self.wire.put("A", late, sent=False)
        self.wire.answer(1, 1, NAK)
        for psn in range(1, 5):
            message(self.wire, psn, 1)
        for psn in range(1, 5):
            self.wire.answer(psn, psn + 1)
        self.expect()

    def test_used_again(self):
        message(self.wire, 0, 1)
        self.wire.answer(0, 1)
        self.wire.wait(100000)
        message(self.wire, 70000, 1)
        self.wire.answer(70000, 1)
        self.assertEqual(self.expect().counts["queue pairs used again"], 1)

    def test_two_connections(self):
        """The PSNs tell which queue pair answers which one."""
        for i, (a, b) in enumerate(((0x30, 0x40), (0x31, 0x41), (0x32, 0x42))):
            for psn in range(3):
                self.wire.put("A", roce.build(ADDRESS["A"], ADDRESS["B"], roce.SEND_ONLY, b, 1000 * i + psn, ackreq=True))
                self.wire.put("B", roce.build(ADDRESS["B"], ADDRESS["A"], roce.ACK, a, 1000 * i + psn, aeth=ACK << 24 | psn + 1))
        self.assertEqual(self.expect().counts["connections"], 3)

    def test_incomplete(self):
        message(self.wire, 0, 1)
        self.wire.out.statistics("vm1", 3)
        with self.assertRaisesRegex(judge.Incomplete, "^3 frames"):
            self.wire.report()

    # ---- a rule each ----

    def test_frame(self):
        data = bytearray(self.wire.frame("A", roce.SEND_ONLY, 0, bytes(9)))
        data[-6] ^= 1
        self.wire.put("A", bytes(data), got=False)
        self.expect("frame")

    def test_frame_lengths(self):
        for cut in (1, 8, 30):
            data = self.wire.frame("A", roce.WRITE_ONLY, 0, bytes(4), dmalen=4)
            self.wire.put("A", data[:-cut], got=False)
        self.assertEqual(len(self.expect("frame").violations), 3)

    def test_header(self):
        message(self.wire, 0, 1, migreq=False)
        self.wire.answer(0, 1)
        self.expect("header")

    def test_opcode(self):
        self.wire.send(roce.SEND_FIRST, 0, bytes(MTU))
        self.wire.send(roce.SEND_ONLY, 1, bytes(4))
        self.expect("opcode")

    def test_opcode_without_first(self):
        self.wire.send(roce.SEND_LAST, 0, bytes(4))
        self.expect("opcode")

    def test_opcode_mixed(self):
        self.wire.send(roce.SEND_FIRST, 0, bytes(MTU))
        self.wire.send(roce.WRITE_LAST, 1, bytes(4))
        self.expect("opcode")

    def test_length(self):
        self.wire.send(roce.SEND_FIRST, 0, bytes(MTU))
        self.wire.send(roce.SEND_MIDDLE, 1, bytes(MTU - 4))
        self.wire.send(roce.SEND_LAST, 2, bytes(4))
        self.wire.answer(2, 1)
        self.expect("length")

    def test_length_of_write(self):
        self.wire.send(roce.WRITE_FIRST, 0, bytes(MTU), va=0, rkey=7, dmalen=MTU + 5)
        self.wire.send(roce.WRITE_LAST, 1, bytes(4))
        self.wire.answer(1, 1)
        self.expect("length")

    def test_psn(self):
        message(self.wire, 0, 1)
        self.wire.answer(0, 1)
        message(self.wire, 2, 1)
        self.wire.answer(1, 1, NAK)
        self.expect("psn")

    def test_psn_after_read(self):
        read(self.wire, 0, 3)
        message(self.wire, 1, 1, lost=True)
        self.expect("go-back", "same", "cause")

    def test_window(self):
        self.wire.send(roce.READ_REQUEST, 0, va=0, rkey=7, dmalen=MTU << 23)
        self.expect()
        message(self.wire, 1 << 23, 1)
        self.expect("window")

    def test_go_back_beyond(self):
        for psn in range(3):
            message(self.wire, psn, 1, lost=psn == 0)
        self.wire.answer(0, 0, NAK)
        message(self.wire, 1, 1)
        self.expect("go-back")

    def test_go_back_before(self):
        for psn in range(3):
            message(self.wire, psn, 1)
            self.wire.answer(psn, psn + 1)
        message(self.wire, 3, 1, lost=True)
        self.wire.wait(70000)
        message(self.wire, 2, 1)
        self.expect("go-back")

    def test_go_back_leaves_out(self):
        for psn in range(4):
            message(self.wire, psn, 1, lost=psn == 0)
        self.wire.answer(0, 0, NAK)
        message(self.wire, 0, 1, lost=True)
        message(self.wire, 2, 1)
        self.expect("go-back")

    def test_same(self):
        message(self.wire, 0, 1, lost=True)
        self.wire.wait(70000)
        self.wire.send(roce.SEND_ONLY, 0, bytes(6))
        self.wire.answer(0, 1)
        self.expect("same")

    def test_same_read(self):
        read(self.wire, 0, 3)
        response(self.wire, 0, 3, 1, lost=True)
        self.wire.wait(70000)
        self.wire.send(roce.READ_REQUEST, 0, va=0x1004, rkey=7, dmalen=2 * MTU + 9)
        self.expect("same")

    def test_same_rest_of_read(self):
        read(self.wire, 0, 3)
        self.wire.answer(0, 1, op=roce.READ_RESP_FIRST, payload=bytes(MTU))
        self.wire.wait(70000)
        self.wire.send(roce.READ_REQUEST, 1, va=0x1000, rkey=7, dmalen=MTU + 9)
        self.expect("same")

    def test_cause(self):
        message(self.wire, 0, 1)
        self.wire.answer(0, 1, lost=True)
        self.wire.wait(1)
        message(self.wire, 0, 1)
        self.wire.answer(0, 1)
        self.expect("cause")

    def test_nak_heeded(self):
        message(self.wire, 0, 1, lost=True)
        message(self.wire, 1, 1)
        self.wire.answer(0, 0, NAK)
        message(self.wire, 2, 1)
        self.expect("nak-heeded")

    def test_late_and_lost_before_it_is_seen(self):
        """A peer outside the daemon: packets after a NAK were already in flight, and one is lost before the capture."""
        self.wire = Wire(far="A")
        for psn in (0, 2, 3):
            message(self.wire, psn, 1)
            if psn < 3:
                self.wire.answer(min(psn, 1), 1, NAK if psn else ACK)
        for psn in (1, 2, 3):
            message(self.wire, psn, 1)
            self.wire.answer(psn, psn + 1)
        counts = self.expect().counts
        self.assertEqual((counts["unseen losses"], counts["go-backs"], counts.get("timeouts")), (1, 1, None))

    def test_implied_nak(self):
        read(self.wire, 0, 1)
        message(self.wire, 1, 1)
        response(self.wire, 0, 1, 1, lost=True)
        self.wire.answer(1, 2)
        message(self.wire, 2, 1)
        self.expect("implied-nak")

    def test_implied_nak_that_it_is_late_for(self):
        """A response overtook others, before it was requested again. All arrived, so no retransmission is due."""
        def add(psn):
            self.wire.send(roce.FETCH_ADD, psn, va=0x1000, rkey=7, swap_add=1)

        def value(psn, **more):
            self.wire.answer(psn, psn + 1, op=roce.ATOMIC_ACK, value=psn, **more)

        for psn in range(5):
            add(psn)
        value(0, lost=True)
        for psn in range(1, 5):
            value(psn)
        for psn in range(3):
            add(psn)
        self.doubled("B", self.wire.frame("B", roce.ATOMIC_ACK, 4, aeth=ACK << 24 | 5, value=4))
        for psn in range(2):
            value(psn)
        for psn in (3, 4, 5):
            add(psn)
        for psn in range(2, 6):
            value(psn)
        self.expect()

    def test_retries(self):
        for _ in range(8):
            message(self.wire, 0, 1, lost=True)
            self.wire.wait(70000)
        self.expect()
        self.expect("retries", retry_count=6)
        message(self.wire, 0, 1, lost=True)
        self.expect("retries")

    def test_timeout(self):
        message(self.wire, 0, 1, lost=True)
        self.wire.wait(67108)       # 67108.864 us
        message(self.wire, 0, 1, lost=True)
        self.expect("timeout", timeout_ns=4096 << 14)

    def stream(self, first, seconds, **more):
        """A SEND every 50 ms."""
        for i in range(seconds * 20):
            message(self.wire, first + i, 1, **more)
            self.wire.wait(50000)
        return first + seconds * 20

    def test_timeout_late(self):
        """A requester that sends new requests could have retransmitted the unanswered one."""
        self.stream(0, 2, lost=True)
        counts = self.expect("timeout-late", timeout_ns=4096 << 14).counts
        self.assertEqual(counts["requests"], 40)
        self.expect()

    def test_timeout_not_late(self):
        """Four times the timeout plus one second may pass."""
        self.stream(0, 1, lost=True)
        self.expect(timeout_ns=4096 << 14)
        self.stream(20, 3, lost=True)
        self.expect("timeout-late", timeout_ns=4096 << 14)
        self.expect(timeout_ns=4096 << 17)

    def test_timeout_of_who_was_heard(self):
        """Each answer restarts the timer."""
        for i in range(6):
            next_psn = self.stream(20 * i, 1)
            self.wire.answer(next_psn - 5, next_psn - 4)
        self.expect(timeout_ns=4096 << 14)

    def test_timeout_of_who_goes_back(self):
        for i in range(6):
            self.stream(0, 1, lost=True)
            self.wire.wait(70000)
        self.expect(timeout_ns=4096 << 14)

    def test_timeout_of_what_asks_for_nothing(self):
        self.stream(0, 5, lost=True, ackreq=False)
        self.expect(timeout_ns=4096 << 14)
        self.stream(100, 2, lost=True)
        self.expect("timeout-late", timeout_ns=4096 << 14)

    def test_timeout_of_who_was_refused(self):
        """The wait of an RNR NAK is not the timeout of an answer: here it is 655 ms."""
        message(self.wire, 0, 1)
        self.wire.answer(0, 0, 0x20)
        self.wire.wait(2000000)
        message(self.wire, 0, 1)
        self.wire.answer(0, 1)
        self.expect(timeout_ns=4096 << 8, lasting=True)

    def test_timeout_of_who_was_stopped(self):
        """A silent device may lack the processor; its late actions come in any order."""
        message(self.wire, 0, 1, lost=True)
        for psn in range(1, 5):
            self.wire.wait(10000000)
            message(self.wire, psn, 1, lost=True)
        self.expect(timeout_ns=4096 << 14)

    def test_timeout_at_the_same_time(self):
        """If an answer and the end of the timeout coincide, the requester may retransmit or continue."""
        for again in (True, False):
            self.wire = Wire()
            for psn in range(2):
                self.wire.send(roce.FETCH_ADD, psn, va=0x1000, rkey=7, swap_add=1)
            self.wire.wait(70000)
            for psn in range(2):
                self.wire.answer(psn, psn + 1, op=roce.ATOMIC_ACK, value=psn)
            for psn in range(2) if again else ():
                self.wire.send(roce.FETCH_ADD, psn, va=0x1000, rkey=7, swap_add=1)
            message(self.wire, 2, 1)
            self.wire.answer(2, 3)
            self.expect(timeout_ns=4096 << 14)

    def test_timeout_from_afar(self):
        self.wire = Wire(far="A")
        self.stream(0, 4, lost=True)
        self.expect(timeout_ns=4096 << 14)

    def test_timeout_without_end(self):
        """A destroyed queue pair is silent, too; without a destroyed queue pair, silence is an error."""
        message(self.wire, 0, 1)
        self.wire.wait(1200000)
        self.wire.out.statistics("vm1", 0, self.wire.ns)
        self.expect(timeout_ns=4096 << 14, lasting=True)
        self.wire.wait(100000)
        self.wire.out.statistics("vm1", 0, self.wire.ns)
        self.expect("timeout-late", timeout_ns=4096 << 14, lasting=True)
        self.expect(timeout_ns=4096 << 14)

    def test_timeout_that_comes_late(self):
        message(self.wire, 0, 1, lost=True)
        for psn in range(40):
            message(self.wire, psn, 1, frm="B")
            self.wire.answer(psn, psn + 1, frm="A")
            self.wire.wait(50000)
        message(self.wire, 0, 1)
        self.wire.answer(0, 1)
        self.expect(timeout_ns=4096 << 14)
        self.expect("timeout-late", timeout_ns=4096 << 14, lasting=True)

    def test_timeout_of_the_last_try(self):
        """After the last retry a queue pair is in error, and silent."""
        for _ in range(8):
            message(self.wire, 0, 1, lost=True)
            self.wire.wait(70000)
        self.wire.wait(5000000)
        message(self.wire, 0, 1, frm="B")
        self.expect(timeout_ns=4096 << 14, lasting=True)
        self.expect("timeout-late", timeout_ns=4096 << 14, lasting=True, retry_count=8)

    def test_rnr_wait(self):
        message(self.wire, 0, 1)
        self.wire.answer(0, 0, RNR)
        self.wire.wait(RNR_US - 1)
        message(self.wire, 0, 1)
        self.wire.answer(0, 1)
        self.expect("rnr-wait")

    def doubled(self, frm, data):
        """Receive a frame that the network duplicated."""
        self.wire.put(frm, data, sent=False)

    def test_rnr_doubled(self):
        """The first RNR NAK starts the wait; its duplicate has no effect, even after the wait."""
        refusal = self.wire.frame("B", roce.ACK, 0, aeth=RNR << 24)
        message(self.wire, 0, 1)
        self.wire.put("B", refusal)
        self.wire.wait(RNR_US - 100)
        self.doubled("B", refusal)
        self.wire.wait(100)
        self.doubled("B", refusal)
        message(self.wire, 0, 1)
        self.wire.answer(0, 1)
        self.expect()

    def test_rnr_wait_once_more(self):
        message(self.wire, 0, 1)
        self.wire.answer(0, 0, RNR)
        self.wire.wait(RNR_US)
        message(self.wire, 0, 1)
        self.wire.answer(0, 0, RNR)
        self.wire.wait(RNR_US - 1)
        message(self.wire, 0, 1)
        self.wire.answer(0, 1)
        self.expect("rnr-wait")

    def test_rnr_of_the_next(self):
        """During the wait a copy of the rejected message is accepted, and another message is rejected."""
        message(self.wire, 0, 1)
        message(self.wire, 1, 1)
        self.wire.answer(0, 0, RNR)
        self.doubled("A", self.wire.frame("A", roce.SEND_ONLY, 0, bytes(5), ackreq=True))
        self.wire.answer(0, 1)
        self.wire.wait(100)
        self.doubled("A", self.wire.frame("A", roce.SEND_ONLY, 1, bytes(5), ackreq=True))
        self.wire.answer(1, 1, RNR)
        self.wire.wait(RNR_US - 100)
        message(self.wire, 1, 1)
        self.wire.answer(1, 2)
        self.expect("rnr-wait")

    def test_rnr_again(self):
        message(self.wire, 0, 1)
        self.wire.answer(0, 0, RNR)
        self.wire.wait(RNR_US)
        message(self.wire, 1, 1, lost=True)
        self.expect("rnr-again")

    def test_fatal_requester(self):
        message(self.wire, 0, 1)
        self.wire.answer(0, 0, NAK | 1)
        message(self.wire, 1, 1)
        self.expect("fatal")

    def test_fatal_responder(self):
        message(self.wire, 0, 1)
        message(self.wire, 1, 1)
        self.wire.answer(0, 0, NAK | 1)
        self.wire.answer(1, 2)
        self.expect("fatal")

    def test_ack_sent(self):
        message(self.wire, 0, 1)
        self.wire.answer(1, 1)
        self.expect("ack-sent")

    def test_ack_arrived(self):
        message(self.wire, 0, 1)
        message(self.wire, 1, 1, lost=True)
        self.wire.answer(1, 2)
        self.expect("ack-arrived")

    def test_ack_due(self):
        message(self.wire, 0, 1)
        self.wire.answer(0, 1)
        message(self.wire, 1, 1)
        self.wire.wait(70000)
        message(self.wire, 1, 1)
        self.expect("ack-due")

    def test_ack_of_a_doubled_request(self):
        """One answer is enough for copies that are not retransmissions, for any delay of the second copy."""
        message(self.wire, 0, 1)
        self.wire.answer(0, 1)
        message(self.wire, 1, 1)
        self.wire.wait(2000)
        for _ in range(3):
            self.doubled("A", self.wire.frame("A", roce.SEND_ONLY, 1, bytes(5), ackreq=True))
        self.wire.answer(1, 2)
        self.expect()

    def test_ack_of_who_may_not_be_ready(self):
        """A queue pair sends no answer before its program has made it ready to receive."""
        for _ in range(4):
            message(self.wire, 0, 1)
            self.wire.wait(70000)
        self.expect()
        self.wire.answer(0, 1)
        self.expect()

    def test_ack_due_from_afar(self):
        self.wire = Wire(far="B")
        message(self.wire, 0, 1)
        self.wire.answer(0, 1)
        for _ in range(3):
            self.expect()
            message(self.wire, 1, 1)
            self.doubled("A", self.wire.frame("A", roce.SEND_ONLY, 1, bytes(5), ackreq=True))
            self.wire.wait(70000)
        self.expect("ack-due")

    def test_ack_order(self):
        read(self.wire, 0, 1)
        message(self.wire, 1, 1)
        self.wire.answer(1, 2, lost=True)
        response(self.wire, 0, 1, 1)
        self.expect("ack-order")

    def test_responses_in_order(self):
        read(self.wire, 0, 1)
        read(self.wire, 1, 1)
        response(self.wire, 1, 1, 2, lost=True)
        response(self.wire, 0, 1, 1)
        self.expect("ack-order")

    def test_msn(self):
        message(self.wire, 0, 1)
        self.wire.answer(0, 2)
        self.expect("msn")

    def test_msn_stays(self):
        message(self.wire, 0, 1)
        self.wire.answer(0, 1)
        message(self.wire, 1, 1)
        self.wire.answer(1, 1)
        self.expect("msn")

    def test_msn_part(self):
        """A capture that starts late counts from the MSN of the first answer."""
        message(self.wire, 0, 1)
        self.wire.answer(0, 77)
        message(self.wire, 1, 1)
        self.wire.answer(1, 78)
        self.expect(whole=False)
        self.expect("msn")
        message(self.wire, 2, 1)
        self.wire.answer(2, 80)
        self.expect("msn", whole=False)

    def test_nak_gap(self):
        message(self.wire, 0, 1)
        self.wire.answer(1, 1, NAK, lost=True)
        self.expect("ack-sent")
        message(self.wire, 1, 1, lost=True)
        self.wire.answer(1, 1, NAK, lost=True)
        self.expect("ack-sent", "nak-gap")

    def test_nak_gap_psn(self):
        message(self.wire, 0, 1, lost=True)
        message(self.wire, 1, 1)
        self.wire.answer(1, 0, NAK, lost=True)
        self.expect("nak-gap", "nak-missing")

    def test_nak_once(self):
        message(self.wire, 0, 1, lost=True)
        for psn in (1, 2):
            message(self.wire, psn, 1)
            self.wire.answer(0, 0, NAK, lost=True)
        self.expect("nak-once")

    def test_nak_missing(self):
        message(self.wire, 0, 1, lost=True)
        message(self.wire, 1, 1)
        self.wire.wait(70000)
        for psn in (0, 1):
            message(self.wire, psn, 1)
            self.wire.answer(psn, psn + 1)
        self.expect("nak-missing")

    def test_rnr_nak_of_write(self):
        self.wire.send(roce.WRITE_ONLY, 0, bytes(4), va=0, rkey=7, dmalen=4)
        self.wire.answer(0, 0, RNR)
        self.expect("rnr-nak")

    def test_rnr_nak_of_nothing(self):
        message(self.wire, 0, 1, lost=True)
        self.wire.answer(0, 0, RNR)
        self.expect("rnr-nak")

    def test_nak_error(self):
        message(self.wire, 0, 1, lost=True)
        self.wire.answer(0, 0, NAK | 2)
        self.expect("nak-error")

    def test_response_psn(self):
        read(self.wire, 0, 3)
        self.wire.answer(0, 1, op=roce.READ_RESP_FIRST, payload=bytes(MTU))
        self.wire.answer(2, 1, op=roce.READ_RESP_LAST, payload=bytes(9), lost=True)
        self.expect("response")

    def test_response_opcode(self):
        read(self.wire, 0, 2)
        self.wire.answer(0, 1, op=roce.READ_RESP_FIRST, payload=bytes(MTU))
        self.wire.answer(1, 1, op=roce.READ_RESP_MIDDLE, payload=bytes(9), lost=True)
        self.expect("response")

    def test_response_twice(self):
        read(self.wire, 0, 1)
        response(self.wire, 0, 1, 1)
        response(self.wire, 0, 1, 1)
        self.expect("response")

    def test_response_too_short(self):
        read(self.wire, 0, 4)
        response(self.wire, 0, 2, 1)
        self.expect("response", "length")

    def test_response_of_nothing(self):
        message(self.wire, 0, 1)
        response(self.wire, 0, 1, 1, lost=True)
        self.expect("response")

    def test_response_of_an_atomic(self):
        self.wire.send(roce.FETCH_ADD, 0, va=0x1000, rkey=7)
        self.wire.answer(0, 1, op=roce.READ_RESP_ONLY, payload=bytes(8))
        self.expect("response")

    def test_response_length(self):
        message(self.wire, 0, 2)
        self.wire.answer(1, 1)
        read(self.wire, 2, 1)
        self.wire.answer(2, 2, op=roce.READ_RESP_ONLY, payload=bytes(8))
        self.expect("length")

    def test_replay(self):
        for value in (5, 5, 6):
            self.wire.send(roce.FETCH_ADD, 0, va=0x1000, rkey=7, swap_add=1)
            self.wire.answer(0, 1, op=roce.ATOMIC_ACK, value=value, lost=True)
            self.wire.wait(70000)
            if value == 5:
                self.expect()
        self.expect("replay")

    def test_unreliable(self):
        for psn in (0, 1, 3):
            self.wire.put("A", self.wire.frame("A", roce.UC | roce.SEND_ONLY, psn), got=psn != 1)
        self.expect("unreliable")

    def test_datagrams_of_two_senders(self):
        for psn in (0, 1, 2):
            for sender in (5, 6):
                self.wire.put("A", self.wire.frame("A", roce.UD | roce.SEND_ONLY, psn * sender, sqpn=sender))
        self.assertEqual({v.number for v in self.expect("unreliable").violations}, {5, 7, 9, 11})

    def notify(self, **more):
        self.wire.put("B", roce.build(ADDRESS["B"], ADDRESS["A"], roce.CNP_OPCODE, QPN["A"], 0, bytes(16), migreq=False,
                                      **{"becn": True, **more}))

    def test_cnp(self):
        for psn in (0, 1):
            message(self.wire, psn, 1, ecn=3)
            self.wire.answer(psn, psn + 1)
            self.notify()
            self.wire.wait(50)
        self.assertEqual(self.expect(cnp_ns=50000).counts["CNPs"], 2)
        self.expect("cnp", cnp_ns=50001)

    def test_cnp_without_mark(self):
        message(self.wire, 0, 1, ecn=2)
        self.wire.answer(0, 1)
        self.notify()
        self.expect("cnp")

    def congest(self, count, **more):
        """A SEND each ms with a mark, and its ACK."""
        for psn in range(count):
            message(self.wire, psn, 1, ecn=3)
            self.wire.answer(psn, psn + 1, **more)
            self.wire.wait(1000)
            yield psn

    def test_cnp_due(self):
        for psn in self.congest(60):
            if psn == 4:
                self.notify()
        self.expect("cnp-due", cnp_ns=50000)
        self.expect()

    def test_cnp_not_due(self):
        """CNPs have a minimum interval, and a turn of the engine is long."""
        for psn in self.congest(200):
            if psn % 48 == 0:
                self.notify()
        self.expect(cnp_ns=1000000)
        self.expect(cnp_ns=48000000)
        self.expect("cnp", cnp_ns=49000000)

    def test_cnp_due_when_the_distance_allows(self):
        list(self.congest(100))
        self.notify()
        self.expect(cnp_ns=50000000)
        self.expect("cnp-due", cnp_ns=40000000)

    def test_cnp_of_who_is_not_there(self):
        """Marks cause no CNP before a queue pair is ready, nor after it has failed."""
        for _ in range(7):
            message(self.wire, 0, 1, ecn=3)
            self.wire.wait(20000)
        message(self.wire, 0, 1)
        self.wire.answer(0, 1)
        for psn in range(1, 200):
            message(self.wire, psn, 1, ecn=3)
            self.wire.wait(1000)
        self.expect(cnp_ns=50000)

    def test_cnp_from_afar(self):
        self.wire = Wire(far="B")
        list(self.congest(200))
        self.expect(cnp_ns=50000)

    def test_cnp_by_who_had_no_processor(self):
        """A turn that is interrupted for long still has a single time stamp."""
        for psn in range(20):
            message(self.wire, psn, 1, ecn=3)
            self.wire.answer(psn, psn + 1)
            self.wire.wait(200000)
        self.expect(cnp_ns=50000)

    def test_cnp_format(self):
        message(self.wire, 0, 1, ecn=3)
        self.wire.answer(0, 1)
        self.notify(becn=False)
        self.expect("cnp")

    def test_every_rule_is_tested(self):
        with open(os.path.realpath(__file__), encoding="utf-8") as file:
            text = file.read()
        self.assertEqual([r for r in rules.RULES if '"%s"' % r not in text], [])


if __name__ == "__main__":
    tap.main()
