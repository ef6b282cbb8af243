#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Ports to this host and beyond are added and removed while the daemon runs, in the test's network namespace."""
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import control  # noqa: E402
import tap      # noqa: E402

CLONE_NEWNET, ETH_P_ALL, SOL_PACKET, PACKET_IGNORE_OUTGOING = 0x40000000, 3, 263, 23
HEAD = b"\xff" * 6 + bytes.fromhex("020000000099") + b"\x88\xb5"
JUMBO = 9014                # bytes of a frame at MTU 9000

# of <linux/if_tun.h>
TUNSETIFF, TUNSETOFFLOAD, TUN_F_CSUM, TUN_F_TSO4 = 0x400454ca, 0x400454d0, 1, 2
TUNSETTXFILTER, TUNSETFILTEREBPF = 0x400454d1, 0x800454e1
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 2, 0x1000, 0x4000


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def setUpModule():
    if os.geteuid():
        raise unittest.SkipTest("only root may have a network namespace")
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    ip("link", "set", "lo", "up")


def frame(number, size=60):
    return HEAD + bytes([number]) + bytes(size - 15)


def csum(data):
    """Return the sum of RFC 1071 of an even number of bytes; 0xffff if their checksum is right."""
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def wire(ifname):
    """Open a socket that sends and receives by a network interface as the host does."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    sock.bind((ifname, 0))
    return sock


class Ports(unittest.TestCase):
    def setUp(self):
        self.daemon = control.Daemon(self)
        self.client = self.daemon.client()
        self.local, self.remote = self.daemon.path("l"), self.daemon.path("r")
        self.inside = self.keep(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self.inside.bind(self.remote)
        self.client.call("port.add", spec="dgram,local=%s,remote=%s,name=inside" % (self.local, self.remote))

    def keep(self, sock):
        """Close the socket at the end, and set its timeout."""
        self.addCleanup(sock.close)
        sock.settimeout(control.PATIENCE)
        return sock

    def ports(self):
        return {p["name"]: p for p in self.client.call("port.list")}

    def comes(self, sock, sent):
        """Receive a frame of the test; skip other frames that the remote end's kernel sends."""
        while True:
            got = sock.recv(65536)
            if got.startswith(HEAD):
                self.assertEqual(got, sent)
                return

    def both_ways(self, name, outside, size=60):
        before = self.ports()[name]["counters"]
        self.inside.sendto(frame(1, size), self.local)
        self.comes(outside, frame(1, size))
        outside.send(frame(2, size))
        self.comes(self.inside, frame(2, size))
        after = self.ports()[name]
        self.assertTrue(after["up"])
        self.assertGreaterEqual(after["counters"]["rx_frames"], before["rx_frames"] + 1)
        self.assertGreaterEqual(after["counters"]["tx_bytes"], before["tx_bytes"] + size)

    def gone(self, name, send=None):
        """Remove the port; check that a frame sent afterwards does not arrive."""
        self.client.call("port.del", name=name)
        self.assertNotIn(name, self.ports())
        if send:
            send(frame(3))
            self.client.call("version")
        self.inside.settimeout(0.2)
        with self.assertRaises(socket.timeout):
            self.comes(self.inside, None)
        self.inside.settimeout(control.PATIENCE)

    def becomes(self, name, up):
        deadline = time.monotonic() + control.PATIENCE
        while self.ports()[name]["up"] != up:
            self.assertLess(time.monotonic(), deadline, "%s is still %s" % (name, "down" if up else "up"))
            time.sleep(0.01)

    def is_idle(self):
        """Check that the daemon is idle."""
        def ticks():
            with open("/proc/%d/stat" % self.daemon.process.pid, encoding="ascii") as f:
                return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
        before = ticks()
        time.sleep(1)
        self.assertLess((ticks() - before) / os.sysconf("SC_CLK_TCK"), 0.3)

    def deleted(self, name, delete):
        """Check that the port stays, down, and causes no load; that one message tells the user; that it can be removed."""
        hint = "ornicctl port del %s, then ornicctl port add" % name
        told = self.daemon.said().count(hint)
        ip("link", "del", delete)
        self.is_idle()
        self.becomes(name, False)
        dropped = self.ports()[name]["counters"]["tx_drop"]
        for number in range(3):
            self.inside.sendto(frame(number), self.local)
        deadline = time.monotonic() + control.PATIENCE
        while self.ports()[name]["counters"]["tx_drop"] < dropped + 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(self.ports()[name]["counters"]["tx_drop"], dropped + 3)
        self.assertFalse(self.ports()[name]["up"])
        self.assertEqual(self.daemon.said().count(hint), told + 1, self.daemon.said())
        self.gone(name)

    def down_and_up(self, name, ifname):
        self.becomes(name, True)
        ip("link", "set", ifname, "down")
        self.becomes(name, False)
        self.is_idle()
        self.inside.sendto(frame(9), self.local)
        ip("link", "set", ifname, "up")
        self.becomes(name, True)

    def interfaces(self):
        return [name for _, name in socket.if_nameindex()]

    def test_tap(self):
        """The interface is created and set up, and deleted with the port."""
        for _ in range(2):
            self.assertIn("tap0", self.daemon.ctl("port", "add", "tap,ifname=tap0"))
            ip("link", "set", "tap0", "mtu", "9000")
            outside = self.keep(wire("tap0"))
            self.both_ways("tap0", outside)
            self.both_ways("tap0", outside, JUMBO)
            self.gone("tap0")
            self.assertNotIn("tap0", self.interfaces())

    def test_tap_stays(self):
        """An interface that existed before stays afterwards, and can be used again."""
        ip("tuntap", "add", "tap1", "mode", "tap")
        for _ in range(2):
            self.client.call("port.add", spec="tap,ifname=tap1,name=lan")
            outside = self.keep(wire("tap1"))
            self.both_ways("lan", outside)
            self.gone("lan")
            self.assertIn("tap1", self.interfaces())

    def leave(self, ifname, request, argument):
        """Use a tap as a VMM does: change a property of the tap, which remains when the VMM ends."""
        fd = os.open("/dev/net/tun", os.O_RDWR)
        try:
            fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", ifname.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
            fcntl.ioctl(fd, request, argument)
        finally:
            os.close(fd)

    def test_tap_had_offloads(self):
        """Frames have complete checksums although the last user of the tap let the kernel leave them out."""
        ip("tuntap", "add", "tap5", "mode", "tap")
        self.addCleanup(ip, "link", "del", "tap5")
        self.leave("tap5", TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4)
        self.client.call("port.add", spec="tap,ifname=tap5,name=lan")
        ip("address", "add", "10.88.5.1/24", "dev", "tap5")
        ip("neighbour", "add", "10.88.5.2", "lladdr", "02:00:00:00:00:99", "dev", "tap5")
        payload = b"the checksum covers this"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(payload, ("10.88.5.2", 9))
        while True:
            got = self.inside.recv(65536)
            if got.endswith(payload):
                break
        udp = got[-8 - len(payload):]
        self.assertEqual(csum(got[26:34] + struct.pack("!HH", socket.IPPROTO_UDP, len(udp)) + udp), 0xffff, got.hex())

    def tap_had(self, request, argument):
        """Check that all frames pass a tap although its last user set a filter that drops them."""
        ip("tuntap", "add", "tap7", "mode", "tap")
        self.addCleanup(ip, "link", "del", "tap7")
        self.leave("tap7", request, argument)
        self.client.call("port.add", spec="tap,ifname=tap7,name=lan")
        self.both_ways("lan", self.keep(wire("tap7")))

    def test_tap_had_address_filter(self):
        self.tap_had(TUNSETTXFILTER, struct.pack("=HH6s", 0, 1, bytes.fromhex("020000000055")))

    def test_tap_had_bpf_filter(self):
        code = ctypes.create_string_buffer(bytes.fromhex("b700000000000000" "9500000000000000"))   # return 0: drop
        terms = ctypes.create_string_buffer(b"GPL")
        load = struct.pack("@IIPP", 1, 2, ctypes.addressof(code), ctypes.addressof(terms))
        number = {"x86_64": 321, "aarch64": 280}.get(os.uname().machine)
        drop = ctypes.CDLL(None).syscall(number, 5, load, len(load)) if number else -1
        if drop < 0:
            self.skipTest("the kernel loads no BPF program for this user")
        self.addCleanup(os.close, drop)
        self.tap_had(TUNSETFILTEREBPF, struct.pack("=i", drop))

    def test_tap_needs_root(self):
        """A user who may not set the tap up reads a command that does."""
        ip("tuntap", "add", "tap6", "mode", "tap")
        self.addCleanup(ip, "link", "del", "tap6")
        done = subprocess.run(["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin", control.ORNICD,
                               "--device", "path=" + self.daemon.path("unused"), "--port", "tap,ifname=tap6"],
                              stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=control.PATIENCE)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("; set it up as root: ip link set tap6 up\n", done.stderr)

    def test_packet(self):
        ip("link", "add", "veth0", "mtu", "9000", "type", "veth", "peer", "name", "veth1", "mtu", "9000")
        ip("link", "set", "veth0", "up")
        ip("link", "set", "veth1", "up")
        outside = self.keep(wire("veth1"))
        for _ in range(2):
            self.client.call("port.add", spec="packet,ifname=veth0")
            self.both_ways("veth0", outside)
            self.both_ways("veth0", outside, JUMBO)
            self.gone("veth0", outside.send)
        self.assertIn("veth0", self.interfaces())

    def test_tap_deleted(self):
        for _ in range(2):
            self.client.call("port.add", spec="tap,ifname=tap2,name=lan")
            self.down_and_up("lan", "tap2")
            self.both_ways("lan", self.keep(wire("tap2")))
            ip("link", "set", "tap2", "name", "tap3")
            self.becomes("lan", True)
            self.deleted("lan", "tap3")

    def test_packet_deleted(self):
        for _ in range(2):
            ip("link", "add", "veth2", "type", "veth", "peer", "name", "veth3")
            ip("link", "set", "veth2", "up")
            ip("link", "set", "veth3", "up")
            self.client.call("port.add", spec="packet,ifname=veth2,name=lan")
            self.down_and_up("lan", "veth2")
            self.both_ways("lan", self.keep(wire("veth3")))
            self.down_and_up("lan", "veth3")    # the remote end of the cable
            ip("link", "set", "veth2", "name", "veth4")
            self.becomes("lan", True)
            self.deleted("lan", "veth3")

    def test_packet_deleted_while_down(self):
        """In this case the kernel sends no notification."""
        ip("link", "add", "veth2", "type", "veth", "peer", "name", "veth3")
        self.client.call("port.add", spec="packet,ifname=veth2,name=lan")
        self.becomes("lan", False)
        self.deleted("lan", "veth2")

    def test_too_long(self):
        """Frames longer than any port carries are counted, and do not arrive truncated."""
        longest = 9216
        self.client.call("port.add", spec="tap,ifname=tap4,name=lan")
        ip("link", "set", "tap4", "mtu", "9500")
        outside = self.keep(wire("tap4"))
        for name, send, receiver in (("lan", outside.send, self.inside),
                                     ("inside", lambda data: self.inside.sendto(data, self.local), outside)):
            send(frame(1, longest + 1))
            send(frame(2, longest))
            self.comes(receiver, frame(2, longest))
            self.assertEqual(self.ports()[name]["counters"]["malformed"], 1)

    def test_no_interface(self):
        with self.assertRaises(control.Refused):
            self.client.call("port.add", spec="packet,ifname=nothing")
        self.assertIn("there is no network interface nothing", self.daemon.said())
        with self.assertRaises(control.Refused):
            self.client.call("port.add", spec="tap,ifname=lo")
        self.assertIn("cannot open tap lo", self.daemon.said())
        self.assertEqual(list(self.ports()), ["a", "b", "inside"])

    def udp(self, family, host, address):
        """Send frames in both directions, also jumbo frames: the kernel fragments those that the outer path does not carry."""
        outside = self.keep(socket.socket(family, socket.SOCK_DGRAM))
        outside.bind((host, 0))
        for _ in range(2):
            with socket.socket(family, socket.SOCK_DGRAM) as free:
                free.bind((host, 0))
                port = free.getsockname()[1]
            spec = "udp,local=%s:%d,remote=%s:%d,name=tunnel" % (address, port, address, outside.getsockname()[1])
            self.assertEqual(self.client.call("port.add", spec=spec), {"name": "tunnel"})
            outside.connect((host, port))
            self.both_ways("tunnel", outside)
            self.both_ways("tunnel", outside, JUMBO)
            # from another address
            with socket.socket(family, socket.SOCK_DGRAM) as stranger:
                stranger.sendto(frame(4), (host, port))
            self.both_ways("tunnel", outside)
            self.gone("tunnel")
            with socket.socket(family, socket.SOCK_DGRAM) as free:
                free.bind((host, port))

    def test_udp(self):
        self.udp(socket.AF_INET, "127.0.0.1", "127.0.0.1")

    @unittest.skipUnless(os.path.exists("/proc/net/if_inet6"), "this kernel has no IPv6")
    def test_udp_ipv6(self):
        self.udp(socket.AF_INET6, "::1", "[::1]")

    def test_udp_on_a_narrow_path(self):
        ip("link", "set", "lo", "mtu", "1500")
        self.addCleanup(ip, "link", "set", "lo", "mtu", "65536")
        self.test_udp()


if __name__ == "__main__":
    tap.main()
