#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Packets that a peer must not send, written with scapy: dropped and counted, or answered by the NAK that IBTA chapter 9 names.

A daemon with two devices and a UNIX datagram port; on the port is this test. The first device's queue pairs (roce_guest.c) are
connected to it. After each test an innocent queue pair of the same device still exchanges data with the other device, and
memory without write permission is unchanged.

Scapy is Debian's package, so the interpreter is Debian's, too.
"""
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import control  # noqa: E402
import tap      # noqa: E402

from scapy.contrib.roce import BTH                          # noqa: E402
from scapy.layers.inet import IP, UDP, IPOption_NOP         # noqa: E402
from scapy.layers.l2 import Dot1Q, Ether                    # noqa: E402
from scapy.packet import Raw                                # noqa: E402

BUILD = os.environ.get("O", os.path.join(TOP, "build"))
GUEST = os.path.join(BUILD, "selftests", "roce_guest")
MAC, PEER_MAC = "02:00:00:00:00:01", "02:00:00:00:00:09"
ADDR, OTHER, PEER = "10.0.0.1", "10.0.0.2", "10.0.0.9"
ROCE = 4791
RC, UC, RD, UD, XRC = 0x00, 0x20, 0x40, 0x60, 0xa0
(SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM, WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST,
 WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM, READ, READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY, ACK, ATOMIC_ACK,
 COMPARE_SWAP, FETCH_ADD) = range(21)
NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS = 0x60, 0x61, 0x62
RTS, ERR = 3, 6
MTU = 1024
WAIT = 20               # seconds; only the expected silence takes longer than microseconds
DROPS = ("bad_gid", "bad_qpn", "bad_opcode", "bad_pkey", "bad_qkey", "rx_drop_rule")
NO_ROCE = "rx_drop_rule"        # a frame for the Ethernet interface, which the guest does not have
PORT_DROPS = ("bad_icrc", "malformed", "rx_drop")       # counted before any device gets the frame

wire = None


def reth(va, rkey, length):
    return struct.pack(">QII", va & (1 << 64) - 1, rkey, length & 0xffffffff)


def atomic(va, rkey, swap=0, compare=0):
    return struct.pack(">QIQQ", va, rkey, swap, compare)


def deth(qkey, sqpn=0x77):
    return struct.pack(">II", qkey, sqpn)


def aeth(syndrome, msn=0):
    return struct.pack(">I", syndrome << 24 | msn)


class Wire:
    """The daemon, its guest, and the remote end of its port."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="test_packets.")
        here, there, orders, *devices = (os.path.join(self.dir, n) for n in ("here", "there", "control", "a", "b"))
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(here)
        self.sock.settimeout(WAIT)
        self.there = there
        ready, said = os.pipe()
        self.daemon = subprocess.Popen([
            os.path.join(BUILD, "san", "ornicd"), "--log-level", "warning", "--ready-fd", str(said),
            "-d", "path=%s,mac=02:00:00:00:00:01" % devices[0], "-d", "path=%s,mac=02:00:00:00:00:02" % devices[1],
            "-p", "dgram,local=%s,remote=%s,name=port" % (there, here), "--control", orders], pass_fds=[said])
        os.close(said)
        if not os.read(ready, 1):
            raise RuntimeError("the daemon does not start")
        os.close(ready)
        self.control = control.Client(orders)
        self.guest = subprocess.Popen([GUEST, *devices], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.has = json.loads(self.guest.stdout.readline())

    def close(self):
        self.guest.stdin.close()
        self.guest.wait(WAIT)
        self.control.close()
        self.daemon.send_signal(signal.SIGTERM)
        status = self.daemon.wait(WAIT), self.guest.returncode
        self.sock.close()
        shutil.rmtree(self.dir)
        return status

    def tell(self, line):
        """Send the guest a command; return its answer."""
        self.guest.stdin.write(line + "\n")
        self.guest.stdin.flush()
        words = self.guest.stdout.readline().split()
        if not words or words[0] != line.split()[0]:
            raise RuntimeError("roce_guest says %s" % words)
        return words[1:]

    def pairs(self, line):
        return dict(w.split("=") for w in self.tell(line))

    def counters(self):
        """Return the device's counters, and the port's counters of drops."""
        port, = (p["counters"] for p in self.control.call("port.list") if p["name"] == "port")
        return {**{k: int(v) for k, v in self.pairs("counters").items()}, **{k: port[k] for k in PORT_DROPS}}

    def send(self, frame):
        self.sock.sendto(bytes(frame), self.there)

    def receive(self):
        """Return the device's next RoCE packet to us, with its extension headers and payload as bytes without the ICRC."""
        while True:
            got = Ether(self.sock.recv(65536))
            if got.dst == PEER_MAC and BTH in got:
                got.rest = bytes(got[BTH].payload)
                return got

    def forget(self):
        """Discard packets of an earlier test that are still on their way."""
        self.sock.setblocking(False)
        try:
            while True:
                self.sock.recv(65536)
        except BlockingIOError:
            pass
        self.sock.settimeout(WAIT)


def setUpModule():
    global wire
    if not os.access(GUEST, os.X_OK):
        raise unittest.SkipTest("no %s: make tests builds it" % os.path.relpath(GUEST, TOP))
    wire = Wire()


def tearDownModule():
    status = wire.close()
    if status != (0, 0):
        raise RuntimeError("exit status of daemon and guest: %s" % (status,))


class Packets(unittest.TestCase):
    def setUp(self):
        wire.tell("connect")
        wire.forget()
        self.psn = 0
        self.has = wire.has
        self.va, self.rkey = self.has["va"], self.has["rkey"]
        self.before = wire.counters()

    def tearDown(self):
        self.assertEqual(wire.tell("innocent"), ["ok"])
        self.assertEqual(wire.tell("memory"), ["ok"])
        self.assertEqual(wire.pairs("states")["innocent"], str(RTS))

    # ---- packets

    def packet(self, opcode, extension=b"", data=b"", psn=None, qp="rc", ip=None, udp=None, ether=None, **bth):
        fields = {"opcode": opcode, "dqpn": self.has[qp], "psn": self.psn if psn is None else psn & 0xffffff, "ackreq": 1,
                  "migreq": 1, "padcount": -len(data) & 3, **bth}
        frame = Ether(dst=MAC, src=PEER_MAC)
        if ether:
            frame = frame / ether
        return frame / IP(src=PEER, dst=ADDR, flags="DF", id=0, **(ip or {})) / \
            UDP(**{"sport": 0xc000, "dport": ROCE, "chksum": 0, **(udp or {})}) / \
            BTH(**fields) / Raw(extension + data + bytes(-len(data) & 3))

    def write(self, data=b"probed!!", off=0, **more):
        return self.packet(WRITE_ONLY, reth(self.va + off, self.rkey, len(data)), data, **more)

    def probe(self):
        """Send a packet that is answered; return the answers that came before that."""
        wire.send(self.write())
        answers = []
        while True:
            got = wire.receive()
            if got[BTH].opcode == ACK and got[BTH].psn == self.psn and got.rest[0] & 0x60 == 0:
                self.psn += 1
                return answers
            answers.append(got)

    def counted(self, name, count=1, what=""):
        """Check that of all drop counters, this one alone counted."""
        now = wire.counters()
        self.assertEqual({n: now[n] - self.before[n] for n in DROPS + PORT_DROPS},
                         {n: count if n == name else 0 for n in DROPS + PORT_DROPS}, what)
        self.before = now

    def dropped(self, frame, counter, what=""):
        """Send @frame and check that there is no answer and that the queue pair is unaffected. @counter, of the device or the
        port, must count the frame (None: its queue pair gets the frame and ignores it). Return the number of packets that the
        queue pairs got, without the probe."""
        wire.send(frame)
        self.assertEqual(self.probe(), [], what)
        now = wire.counters()
        seen = now["rdma_rx_packets"] - self.before["rdma_rx_packets"]
        self.counted(counter, what=what)
        return seen - 1

    def refused(self, frame, syndrome, counter, what=""):
        """Check that the frame causes a NAK and the end of the connection."""
        wire.send(frame)
        got = wire.receive()
        self.assertEqual((got[BTH].opcode, got[BTH].dqpn, got.rest[0]), (ACK, self.has["peer"], syndrome), what)
        self.assertEqual(got[BTH].psn, self.psn, what)
        self.assertEqual(wire.pairs("states")["rc"], str(ERR), what)
        now = wire.counters()
        self.assertEqual(now[counter] - self.before[counter], 1, what)
        self.assertEqual(wire.tell("memory"), ["ok"], what)
        self.assertEqual(wire.tell("innocent"), ["ok"], what)
        self.setUp()

    def read(self, off, length):
        wire.send(self.packet(READ, reth(self.va + off, self.rkey, length)))
        got = wire.receive()
        self.assertEqual((got[BTH].opcode, got[BTH].psn), (READ_ONLY, self.psn))
        self.psn += 1
        return got.rest[4:4 + length]

    # ---- valid packets

    def test_good(self):
        """Valid packets pass; otherwise the other tests would prove nothing."""
        wire.send(self.packet(SEND_ONLY, data=b"hello"))
        got = wire.receive()
        self.assertEqual((got[BTH].opcode, got[BTH].psn, got[BTH].dqpn), (ACK, 0, self.has["peer"]))
        self.assertEqual(got[IP].src, ADDR)
        self.psn += 1
        self.assertEqual(self.read(0, 5), b"hello")
        wire.send(self.packet(UD | SEND_ONLY, deth(self.has["qkey"]), b"datagram", qp="ud"))
        wire.send(self.packet(UC | SEND_ONLY, data=b"uc", qp="uc"))
        self.assertEqual(self.probe(), [])
        self.assertEqual(wire.pairs("polls"), {"rc": "128/0,", "uc": "128/0,", "ud": "128/0,"})

    # ---- packets that do not reach a queue pair

    def test_icrc(self):
        for flip in (1, 1 << 31):
            frame = self.write(b"evil")
            frame[BTH].icrc = int.from_bytes(bytes(frame)[-4:], "big") ^ flip
            self.assertEqual(self.dropped(frame, "bad_icrc"), 0)
        for at in (60, 45, 30):         # payload, BTH, source address: the ICRC covers all of them
            raw = bytearray(bytes(self.write(b"evil")))
            raw[at] ^= 0x10
            if at == 30:                # but the IP header's checksum is right
                ip = IP(bytes(raw[14:34]))
                del ip.chksum
                raw[14:34] = bytes(ip)[:20]
            self.assertEqual(self.dropped(raw, "bad_icrc", at), 0)
        self.assertNotIn(b"evil", self.read(0, 64))

    def test_lengths(self):
        good = bytes(self.write(b"evil"))
        for cut in (1, 4, 8, len(good) - 54, len(good) - 42, len(good) - 34, len(good) - 20):
            self.assertEqual(self.dropped(good[:-cut], NO_ROCE, cut), 0)
        for more, counter in (({"ip": {"len": 2000}}, NO_ROCE), ({"ip": {"len": 20}}, NO_ROCE), ({"ip": {"len": 19}}, NO_ROCE),
                              ({"ip": {"len": 28}}, "malformed"), ({"udp": {"len": 8}}, "malformed"),
                              ({"udp": {"len": 7}}, "malformed"), ({"udp": {"len": 2000}}, "malformed"),
                              ({"udp": {"len": 0}}, "malformed")):
            self.assertEqual(self.dropped(self.write(b"evil", **more), counter, more), 0)
        # a payload with its pad that is no multiple of four bytes
        self.assertEqual(self.dropped(self.packet(SEND_ONLY, b"abc"), "malformed"), 0)
        # more pad than payload
        self.assertEqual(self.dropped(self.packet(SEND_ONLY, padcount=3), "malformed"), 0)
        # an opcode without payload has one
        self.assertEqual(self.dropped(self.packet(READ, reth(self.va, self.rkey, 8), b"more"), "malformed"), 0)
        self.assertNotIn(b"evil", self.read(0, 64))

    def test_transport_version(self):
        self.assertEqual(self.dropped(self.write(version=1), "malformed"), 0)

    def test_ip(self):
        for more in ({"flags": "MF"}, {"frag": 1}, {"frag": 100, "flags": "MF"}, {"proto": 6},
                     {"options": [IPOption_NOP()] * 4}, {"version": 5}, {"chksum": 1}):
            frame = self.write(b"evil")
            for name, value in more.items():
                setattr(frame[IP], name, value)
            self.assertEqual(self.dropped(frame, NO_ROCE, more), 0)
        self.assertEqual(self.dropped(self.write(b"evil", udp={"dport": ROCE - 1}), NO_ROCE), 0)
        self.assertNotIn(b"evil", self.read(0, 64))

    def test_vlan(self):
        """The VLAN has no such address: not a RoCE packet of the function (ORN-STEER-1)."""
        for tag in (Dot1Q(vlan=5), Dot1Q(vlan=4095), Dot1Q(vlan=5, prio=7)):
            self.assertEqual(self.dropped(self.write(ether=tag), NO_ROCE, tag.vlan), 0)
        for tag in (Dot1Q(vlan=5) / Dot1Q(vlan=5), Dot1Q(vlan=5, type=0x88a8) / Raw(b"\x00\x05")):
            self.assertEqual(self.dropped(self.write(ether=tag), NO_ROCE, tag.type), 0)

    # ---- packets that a device drops

    def test_foreign(self):
        frame = self.write()
        frame[IP].dst = OTHER           # the address of another host, at this host's MAC address: for the rules (ORN-STEER-1)
        self.assertEqual(self.dropped(frame, NO_ROCE), 0)
        frame = self.write()
        frame[IP].src = "10.0.0.8"      # not the peer of the connection
        self.assertEqual(self.dropped(frame, "bad_gid"), 0)
        for dqpn in (0, 1, 0x123456, 0xffffff):
            self.assertEqual(self.dropped(self.write(dqpn=dqpn), "bad_qpn", dqpn), 0)
        # the innocent's queue pair, but not by its peer
        self.assertEqual(self.dropped(self.write(qp="innocent"), "bad_gid"), 0)

    def test_partition(self):
        for pkey in (0, 1, 0x8001, 0x1234, 0xfffe, 0x7ffe):
            self.assertEqual(self.dropped(self.write(pkey=pkey), "bad_pkey", hex(pkey)), 0)

    def test_limited_member(self):
        """IBTA 10.9.3: P_Keys match if their low 15 bits do and one of the two is a full member's."""
        wire.send(self.write(pkey=0x7fff))
        self.assertEqual(wire.receive().rest[0] & 0x60, 0)
        self.psn += 1
        self.counted(None)

    def test_qkey(self):
        for qkey in (0, 0x10, 0x11000000, 0x80010000, 0xffffffff):
            self.dropped(self.packet(UD | SEND_ONLY, deth(qkey), b"x", qp="ud"), "bad_qkey", hex(qkey))
        self.assertEqual(wire.pairs("polls")["ud"], "")

    def test_transport_class(self):
        for transport in (UC, RD, UD, XRC, 0x80, 0xc0, 0xe0):
            frame = self.packet(transport | SEND_ONLY, deth(0x11) if transport == UD else b"", b"data")
            self.assertEqual(self.dropped(frame, "bad_opcode", hex(transport)), 0)
        for qp, transport in (("ud", RC), ("ud", UC), ("uc", RC), ("uc", UD)):
            frame = self.packet(transport | SEND_ONLY, deth(0x11) if transport == UD else b"", b"data", qp=qp)
            self.assertEqual(self.dropped(frame, "bad_opcode", qp), 0)
        self.assertEqual(wire.pairs("polls"), {"rc": "", "uc": "", "ud": ""})

    def test_unknown_opcode(self):
        for opcode in (0x15, 0x18, 0x19, 0x1a, 0x1b, 0x1e, 0x1f):
            self.dropped(self.packet(opcode, data=b"12345678"), "bad_opcode", hex(opcode))
        for opcode, data in ((READ, reth(self.va, self.rkey, 8)), (FETCH_ADD, atomic(self.va, self.rkey, 1))):
            self.dropped(self.packet(UC | opcode, data, qp="uc"), "bad_opcode", hex(opcode))
        for opcode in (UD | SEND_FIRST, UD | WRITE_ONLY, UD | READ):
            data = deth(0x11) + reth(self.va, self.rkey, 8)
            self.dropped(self.packet(opcode, data, qp="ud"), "bad_opcode", hex(opcode))

    def test_reserved_bits(self):
        """IBTA 9.2: the receiver ignores reserved fields."""
        for more in ({"resv6": 0x3f}, {"resv7": 0x7f}, {"migreq": 0}, {"fecn": 1}, {"becn": 1}, {"solicited": 1}):
            wire.send(self.write(**more))
            got = wire.receive()
            self.assertEqual((got[BTH].opcode, got[BTH].psn, got.rest[0] & 0x60), (ACK, self.psn, 0), more)
            self.psn += 1
        self.counted(None)

    # ---- sequence numbers

    def test_stale(self):
        self.assertEqual(self.probe(), [])
        for old in (1, 1, 2, 1 << 22):
            wire.send(self.write(b"evil", psn=self.psn - old))
            got = wire.receive()
            self.assertEqual((got[BTH].opcode, got[BTH].psn, got.rest[0] & 0x60), (ACK, self.psn - 1, 0), old)
        self.assertEqual(wire.counters()["duplicates"] - self.before["duplicates"], 4)
        self.assertEqual(self.read(0, 8), b"probed!!")

    def test_future(self):
        for ahead in (1, 100, (1 << 23) - 1):   # one NAK until the missing packet comes
            wire.send(self.write(b"evil", psn=self.psn + ahead))
        got = wire.receive()
        self.assertEqual((got[BTH].opcode, got[BTH].psn, got.rest[0]), (ACK, self.psn, NAK_SEQUENCE))
        self.assertEqual(self.probe(), [])
        now = wire.counters()
        self.assertEqual(now["out_of_order"] - self.before["out_of_order"], 3)
        self.assertEqual(now["seq_naks_sent"] - self.before["seq_naks_sent"], 1)
        self.assertEqual(self.read(0, 8), b"probed!!")

    def test_atomic_twice(self):
        """A duplicate is answered with the first result, and changes nothing."""
        wire.send(self.write(bytes(8)))
        wire.receive()
        self.psn += 1
        for _ in range(3):
            wire.send(self.packet(FETCH_ADD, atomic(self.va, self.rkey, 5)))
            got = wire.receive()
            self.assertEqual((got[BTH].opcode, got[BTH].psn, got.rest[4:12]), (ATOMIC_ACK, self.psn, bytes(8)))
        self.psn += 1
        self.assertEqual(self.read(0, 8), struct.pack("<Q", 5))

    def test_sequence_of_opcodes(self):
        full = bytes(MTU)
        for opcode in (SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM):
            self.refused(self.packet(opcode, data=full), NAK_INVALID, "remote_invalid_requests", opcode)
        for first, then in ((SEND_FIRST, SEND_FIRST), (SEND_FIRST, WRITE_LAST), (SEND_FIRST, SEND_ONLY), (SEND_FIRST, READ),
                            (WRITE_FIRST, SEND_LAST), (WRITE_FIRST, WRITE_ONLY), (WRITE_FIRST, FETCH_ADD)):
            head = reth(self.va, self.rkey, 2 * MTU) if first == WRITE_FIRST else b""
            wire.send(self.packet(first, head, full, ackreq=0))
            self.psn += 1
            head = {READ: reth(self.va, self.rkey, 8), FETCH_ADD: atomic(self.va, self.rkey),
                    WRITE_ONLY: reth(self.va, self.rkey, 0)}.get(then, b"")
            self.refused(self.packet(then, head, b"" if head else full), NAK_INVALID, "remote_invalid_requests", (first, then))

    def test_packet_sizes(self):
        for opcode, data in ((SEND_FIRST, b"short"), (SEND_FIRST, b""), (SEND_ONLY, bytes(MTU + 4)), (SEND_FIRST, bytes(MTU + 4))):
            self.refused(self.packet(opcode, data=data), NAK_INVALID, "remote_invalid_requests", (opcode, len(data)))
        wire.send(self.packet(SEND_FIRST, data=bytes(MTU), ackreq=0))
        self.psn += 1
        self.refused(self.packet(SEND_LAST), NAK_INVALID, "remote_invalid_requests", "an empty end")

    # ---- memory

    def test_reth(self):
        end = self.has["bytes"]
        for va, length, rkey in ((self.va - 1, 8, self.rkey), (self.va + end - 7, 8, self.rkey), (self.va + end, 8, self.rkey),
                                 (-8, 8, self.rkey), (-4, 8, self.rkey), (0, 8, self.rkey), (self.va, 8, self.rkey ^ 1),
                                 (self.va, 8, 0), (self.va, 8, 0xffffffff), (self.va, 8, self.rkey + 256),
                                 (self.has["ro_va"], 8, self.rkey), (self.has["ro_va"], 8, self.has["ro_rkey"])):
            self.refused(self.packet(WRITE_ONLY, reth(va, rkey, length), b"evilevil"), NAK_ACCESS, "remote_access_errors",
                         (hex(va), length, hex(rkey)))
            if rkey != self.has["ro_rkey"]:
                self.refused(self.packet(READ, reth(va, rkey, length)), NAK_ACCESS, "remote_access_errors",
                             (hex(va), length, hex(rkey)))

    def test_reth_length(self):
        for length in (0x7fffffff, 0x80000000, self.has["bytes"] + 1):
            self.refused(self.packet(READ, reth(self.va, self.rkey, length)), NAK_ACCESS, "remote_access_errors", length)
            self.refused(self.packet(WRITE_FIRST, reth(self.va, self.rkey, length), bytes(MTU)), NAK_ACCESS,
                         "remote_access_errors", length)
        for length in (0x80000001, 0xffffffff):
            self.refused(self.packet(READ, reth(self.va, self.rkey, length)), NAK_INVALID, "remote_invalid_requests", length)
            self.refused(self.packet(WRITE_FIRST, reth(self.va, self.rkey, length), bytes(MTU)), NAK_INVALID,
                         "remote_invalid_requests", length)
        # differs from the packets' payload
        for length in (0, 4, 12, MTU + 8):
            self.refused(self.packet(WRITE_ONLY, reth(self.va, self.rkey, length), b"12345678"), NAK_INVALID,
                         "remote_invalid_requests", length)

    def test_atomics(self):
        for va in (self.va + 1, self.va + 4):
            self.refused(self.packet(FETCH_ADD, atomic(va, self.rkey, 1)), NAK_INVALID, "remote_invalid_requests", va)
        for va, rkey in ((self.has["ro_va"], self.has["ro_rkey"]), (self.va + self.has["bytes"], self.rkey), (8, self.rkey)):
            self.refused(self.packet(COMPARE_SWAP, atomic(va, rkey, 1, 0xc7c7c7c7c7c7c7c7)), NAK_ACCESS,
                         "remote_access_errors", va)

    def test_uc_reth(self):
        """UC has no answers: the message is dropped."""
        before = self.before["remote_access_errors"]
        frame = self.packet(UC | WRITE_ONLY, reth(self.has["ro_va"], self.has["ro_rkey"], 8), b"evilevil", qp="uc")
        self.assertEqual(self.dropped(frame, None), 1)
        self.assertEqual(self.before["remote_access_errors"] - before, 1)
        self.assertEqual(wire.pairs("states")["uc"], str(RTS))

    # ---- unsolicited answers

    def answer(self, opcode, psn, extension, data=b"", **more):
        return self.packet(opcode, extension, data, psn=psn, ackreq=0, **more)

    def test_forged_answers(self):
        """No request is outstanding."""
        for psn in (0, 1, 0xffffff, 1 << 22):
            for frame in (self.answer(ACK, psn, aeth(0x1f)), self.answer(ACK, psn, aeth(NAK_ACCESS)),
                          self.answer(ACK, psn, aeth(0x20)), self.answer(READ_ONLY, psn, aeth(0x1f), b"evil"),
                          self.answer(ATOMIC_ACK, psn, aeth(0x1f) + bytes(8))):
                self.dropped(frame, None, (psn, frame[BTH].opcode))
        self.assertEqual(wire.pairs("states")["rc"], str(RTS))
        self.assertEqual(wire.pairs("polls")["rc"], "")

    def test_forged_acks(self):
        """An RDMA WRITE of three packets is outstanding: the device ignores answers to other PSNs, or not from the peer."""
        wire.tell("write 3000")
        sent = [wire.receive() for _ in range(3)]
        self.assertEqual([p[BTH].psn for p in sent], [0, 1, 2])
        foreign = self.answer(ACK, 2, aeth(0x1f))
        foreign[IP].src = "10.0.0.8"
        for frame in (foreign, self.answer(ACK, 3, aeth(0x1f)), self.answer(ACK, 0xffffff, aeth(NAK_ACCESS)),
                      self.answer(ACK, 3, aeth(NAK_INVALID)), self.answer(ACK, 1 << 22, aeth(0x1f)),
                      self.answer(UC | ACK, 2, aeth(0x1f)), self.answer(ACK, 0, aeth(0x65)),
                      self.answer(ACK, 2, aeth(0x1f), pkey=0x1234)):
            wire.send(frame)
        wire.send(self.write())
        while wire.receive()[BTH].opcode != ACK:        # it may have retransmitted the WRITE meanwhile
            pass
        self.psn += 1
        self.assertEqual((wire.pairs("states")["rc"], wire.pairs("polls")["rc"]), (str(RTS), ""))
        wire.send(self.answer(ACK, 2, aeth(0x1f)))
        wire.send(self.write())
        while wire.receive()[BTH].opcode != ACK:
            pass
        self.assertEqual(wire.pairs("polls")["rc"], "1/0,")


if __name__ == "__main__":
    tap.main()
