#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Frames of this host's stack through "packet" ports: the stack leaves segmentation and checksums to the network card.

Two hosts, network namespaces with the kernel's stack, are joined by the daemon: each has one end of a veth pair with default
settings, and the daemon has the other. A socket next to the second host's stack captures the frames that the daemon sends
there.
"""
import contextlib
import ctypes
import hashlib
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import control  # noqa: E402
import tap      # noqa: E402

CLONE_NEWNET, ETH_P_ALL, SOL_PACKET, PACKET_IGNORE_OUTGOING = 0x40000000, 3, 263, 23
PACKET_AUXDATA, PACKET_VNET_HDR = 8, 15
SOL_UDP, UDP_SEGMENT, SO_RCVBUFFORCE = 17, 103, 33
MTU, ETH, TAG = 1500, 14, 4
VLAN_VALID, CSUM_NOT_READY = 1 << 4, 1 << 3
NEEDS_CSUM, GSO_TCPV4, GSO_ECN = 1, 1, 0x80
FIN, PSH, ACK, CWR = 1, 8, 16, 128
LIBC = ctypes.CDLL(None, use_errno=True)
MEGA = 1 << 20


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def checked(result, what):
    if result:
        raise OSError(ctypes.get_errno(), what)


def setUpModule():
    if os.geteuid():
        raise unittest.SkipTest("only root may have a network namespace")
    checked(LIBC.unshare(CLONE_NEWNET), "unshare")


class Host:
    """A network namespace; a socket belongs to the one in which it was created."""

    def __init__(self, case):
        with self.back():
            checked(LIBC.unshare(CLONE_NEWNET), "unshare")
            self.net = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
            ip("link", "set", "lo", "up")
        case.addCleanup(os.close, self.net)
        self.path = "/proc/%d/fd/%d" % (os.getpid(), self.net)

    @staticmethod
    @contextlib.contextmanager
    def back():
        """Return the thread to its former namespace afterwards."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            yield
        finally:
            checked(LIBC.setns(before, CLONE_NEWNET), "setns")
            os.close(before)

    @contextlib.contextmanager
    def inside(self):
        with self.back():
            checked(LIBC.setns(self.net, CLONE_NEWNET), "setns")
            yield

    def socket(self, *args):
        with self.inside():
            return socket.socket(*args)

    def ip(self, *words):
        with self.inside():
            ip(*words)


def total(data):
    if len(data) % 2:
        data += b"\0"
    value = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while value >> 16:
        value = (value & 0xffff) + (value >> 16)
    return value


class Seen:
    """Frames that pass an interface towards its stack: lengths, and numbers of TCP and UDP frames by state of the checksum."""

    def __init__(self, case, sock):
        self.sock, self.frames, self.wrong = sock, [], []
        self.tagged = self.unfinished = self.cwr = 0
        self.end = threading.Event()
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 * MEGA)
        sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        sock.settimeout(0.2)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        case.addCleanup(sock.close)
        case.addCleanup(self.stop)

    def stop(self):
        """Stop after all frames that were sent before."""
        self.end.set()
        self.thread.join()
        return self

    def wait(self, count):
        """Wait until that many frames of TCP or UDP have passed, or until the timeout."""
        deadline = time.monotonic() + control.PATIENCE
        while len(self.frames) < count and time.monotonic() < deadline:
            time.sleep(0.01)

    def run(self):
        while True:
            try:
                frame, more = self.sock.recvmsg(1 << 17, 256)[:2]
            except socket.timeout:
                if self.end.is_set():
                    return
                continue
            status = next(struct.unpack_from("I", data)[0] for level, kind, data in more
                          if (level, kind) == (SOL_PACKET, PACKET_AUXDATA))
            self.tagged += bool(status & VLAN_VALID)
            self.unfinished += bool(status & CSUM_NOT_READY)
            self.look(frame)

    def look(self, frame):
        kind, packet = frame[12:14], frame[ETH:]
        if kind == b"\x08\x00":
            head = (packet[0] & 15) * 4
            packet = packet[:struct.unpack_from("!H", packet, 2)[0]]
            right = total(packet[:head]) == 0xffff
            proto, addresses = packet[9], packet[12:20]
        elif kind == b"\x86\xdd":
            head, right = 40, True
            packet = packet[:40 + struct.unpack_from("!H", packet, 4)[0]]
            proto, addresses = packet[6], packet[8:40]
        else:
            return
        if proto not in (socket.IPPROTO_TCP, socket.IPPROTO_UDP):
            return
        self.frames.append(len(frame))
        transport = packet[head:]
        self.cwr += proto == socket.IPPROTO_TCP and bool(transport[13] & CWR)
        if not right or total(addresses + struct.pack("!HH", proto, len(transport)) + transport) != 0xffff:
            self.wrong.append(frame[:80].hex())


class Offload(unittest.TestCase):
    ADDRESS = {socket.AF_INET: "10.99.%d.%d", socket.AF_INET6: "fd00:99:%d::%d"}

    def setUp(self):
        self.daemon = control.Daemon(self)
        self.client = self.daemon.client()
        self.hosts = [Host(self), Host(self)]
        for number, host in enumerate(self.hosts):
            port = "port%d" % number
            ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host.path)
            self.addCleanup(ip, "link", "del", port)
            ip("link", "set", port, "up")
            host.ip("link", "set", "eth0", "up")
            self.address(number, "eth0", 0)
            self.client.call("port.add", spec="packet,ifname=" + port)

    def address(self, number, ifname, net):
        for text, more in ((self.ADDRESS[socket.AF_INET], []), (self.ADDRESS[socket.AF_INET6], ["nodad"])):
            length = "/64" if more else "/24"
            self.hosts[number].ip("address", "add", text % (net, number + 1) + length, "dev", ifname, *more)

    def watch(self, number):
        sock = self.hosts[number].socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        sock.bind(("eth0", 0))
        return Seen(self, sock)

    def watch_port(self, number):
        """Capture the frames that reach the daemon."""
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        sock.bind(("port%d" % number, 0))
        return Seen(self, sock)

    def counters(self, number):
        return next(p["counters"] for p in self.client.call("port.list") if p["name"] == "port%d" % number)

    def transfer(self, family, data, sender=0, net=0):
        """Transfer data by TCP to the other host; return the digest of the received data."""
        receiver = 1 - sender
        digest = hashlib.sha256()
        with self.hosts[receiver].socket(family, socket.SOCK_STREAM) as listener, \
                self.hosts[sender].socket(family, socket.SOCK_STREAM) as out:
            listener.bind((self.ADDRESS[family] % (net, receiver + 1), 0))
            listener.listen(1)
            for sock in (listener, out):
                sock.settimeout(control.PATIENCE)
            out.connect(listener.getsockname()[:2])
            with listener.accept()[0] as come:
                come.settimeout(control.PATIENCE)

                def send():
                    with contextlib.suppress(OSError):
                        out.sendall(data)
                        out.shutdown(socket.SHUT_WR)
                thread = threading.Thread(target=send)
                thread.start()
                try:
                    while part := come.recv(MEGA):
                        digest.update(part)
                finally:
                    thread.join()
        self.assertEqual(digest.hexdigest(), hashlib.sha256(data).hexdigest())

    def check(self, come, arrived, least, tagged=False):
        """Check that the stack left work to the card, and that frames arrived complete. Return how many frames arrived."""
        come.stop()
        arrived.stop()
        self.assertGreater(max(come.frames), MTU + ETH, "the stack cut the frames itself")
        self.assertGreater(come.unfinished, 0)
        self.assertGreaterEqual(len(arrived.frames), least)
        self.assertLessEqual(max(arrived.frames), MTU + ETH)        # a tag is in the metadata
        self.assertEqual(arrived.wrong[:3], [])
        self.assertEqual(arrived.unfinished, 0)
        if tagged:
            self.assertGreaterEqual(arrived.tagged, least)
        for number in range(2):
            counters = self.counters(number)
            self.assertEqual((counters["malformed"], counters["bad_icrc"]), (0, 0))

    def tcp(self, family):
        data = os.urandom(4 * MEGA)
        for sender in range(2):
            come, arrived = self.watch_port(sender), self.watch(1 - sender)
            self.transfer(family, data, sender)
            self.check(come, arrived, len(data) // MTU)

    def test_tcp(self):
        self.tcp(socket.AF_INET)

    def test_tcp_ipv6(self):
        self.tcp(socket.AF_INET6)

    def test_tcp_ecn(self):
        """On a rate-limited link marks arrive, and the flag that reports them leaves with the first segment of a frame."""
        for host in self.hosts:
            with host.inside(), open("/proc/sys/net/ipv4/tcp_ecn", "w", encoding="ascii") as f:
                f.write("1")
        self.client.call("port.del", name="port1")
        self.client.call("port.add", spec="packet,ifname=port1,rate=200M,kmin=30000,kmax=60000,pmax=100,queue=4M")
        data = os.urandom(4 * MEGA)
        come, arrived = self.watch_port(0), self.watch(1)
        self.transfer(socket.AF_INET, data)
        self.check(come, arrived, len(data) // MTU)
        self.assertGreater(arrived.cwr, 0)
        self.assertLessEqual(arrived.cwr, come.cwr)

    def inject(self, frame, number=0, **todo):
        """Send a frame of the stack with an offload request for the card."""
        with self.hosts[number].socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sock:
            sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
            sock.bind(("eth0", ETH_P_ALL))
            sock.send(struct.pack("=BBHHHH", todo.get("flags", NEEDS_CSUM), todo["gso_type"], todo.get("hdr_len", 0),
                                  todo["gso_size"], todo["csum_start"], todo.get("csum_offset", 16)) + frame)

    @staticmethod
    def segments(tag, length, flags):
        """Return a frame of TCP to be segmented, and the offset of TCP."""
        addresses = bytes([10, 99, 0, 1, 10, 99, 0, 2])
        pseudo = total(addresses + struct.pack("!HH", 6, 20 + length))
        tcp = struct.pack("!HHIIBBHHH", 5, 6, 1000, 0, 5 << 4, flags, 99, pseudo, 0)
        packet = struct.pack("!BBHHHBBH", 0x45, 0, 40 + length, 7, 0x4000, 64, 6, 0) + addresses
        packet = packet[:10] + struct.pack("!H", 0xffff ^ total(packet)) + packet[12:]
        head = b"\xff" * 6 + bytes.fromhex("020000000077") + tag + b"\x08\x00"
        return head + packet + tcp + os.urandom(length), len(head) + 20

    def test_vlan(self):
        """The tag is in the metadata, and the offsets of the offload request do not count it."""
        come, arrived = self.watch_port(0), self.watch(1)
        for vlan in range(1, 4):
            frame, start = self.segments(struct.pack("!HH", 0x8100, vlan), 20000, ACK | PSH | FIN | CWR)
            self.inject(frame, gso_type=GSO_TCPV4 | GSO_ECN, gso_size=1000, csum_start=start, hdr_len=start + 20)
        arrived.wait(60)
        self.check(come, arrived, 60, tagged=True)
        self.assertEqual(len(arrived.frames), 60)
        self.assertEqual(arrived.cwr, 3)

    def test_too_long(self):
        """A frame whose segments no port could carry is counted, and frames after it are not affected."""
        come, arrived = self.watch_port(0), self.watch(1)
        frame, start = self.segments(b"", 20000, ACK)
        for size in (9216 - start - 20 + 1, 1000):
            self.inject(frame, gso_type=GSO_TCPV4, gso_size=size, csum_start=start, hdr_len=start + 20)
        arrived.wait(20)
        come.stop()
        self.assertEqual(len([n for n in come.frames if n == len(frame)]), 2)
        self.assertEqual(arrived.stop().wrong, [])
        self.assertEqual(arrived.frames, [start + 20 + 1000] * 20)
        self.assertEqual(self.counters(0)["malformed"], 1)

    def test_many(self):
        """Frames with very many segments do not keep the daemon from other work."""
        frame, start = self.segments(b"", 60000, ACK)
        frames, pieces = 20, 60000 // 8
        os.kill(self.daemon.process.pid, signal.SIGSTOP)
        try:
            for _ in range(frames):
                self.inject(frame, gso_type=GSO_TCPV4, gso_size=8, csum_start=start, hdr_len=start + 20)
        finally:
            os.kill(self.daemon.process.pid, signal.SIGCONT)
        seen, deadline = [0], time.monotonic() + control.PATIENCE
        while seen[-1] < frames * pieces and time.monotonic() < deadline:
            seen.append(self.counters(0)["rx_frames"])
        self.assertGreaterEqual(seen[-1], frames * pieces)
        self.assertGreater(len([n for n in seen if pieces < n < frames * pieces]), 0, "all were cut before anybody was answered")

    def udp(self, family):
        """Send datagrams that the kernel segments for the program, and single ones."""
        if tuple(int(n) for n in re.findall(r"\d+", os.uname().release)[:2]) < (6, 2):
            self.skipTest("this kernel cannot say of UDP that it is to be cut")
        come, arrived = self.watch_port(0), self.watch(1)
        text = self.ADDRESS[family]
        with self.hosts[0].socket(family, socket.SOCK_DGRAM) as out, self.hosts[1].socket(family, socket.SOCK_DGRAM) as into:
            into.bind((text % (0, 2), 0))
            into.settimeout(control.PATIENCE)
            out.connect(into.getsockname()[:2])
            for size, length in ((0, 1), (0, 1000), (1400, 43000), (1400, 42000), (99, 5000), (1001, 1001)):
                data = os.urandom(length)
                out.setsockopt(SOL_UDP, UDP_SEGMENT, size)
                out.send(data)
                size = size or length
                for at in range(0, length, size):
                    self.assertEqual(into.recv(65536), data[at:at + size])
        self.check(come, arrived, 115)

    def test_udp(self):
        self.udp(socket.AF_INET)

    def test_udp_ipv6(self):
        self.udp(socket.AF_INET6)


if __name__ == "__main__":
    tap.main()
