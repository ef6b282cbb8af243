#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Frames of a guest that claims addresses of others, written with scapy: they do not leave a daemon with --untrusted, and all of
them leave one without. The guest is frame_guest.c; the segment's other end is a UNIX datagram port.

Scapy is Debian's package, so the interpreter is Debian's, too.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import control  # noqa: E402
import tap      # noqa: E402

from scapy.layers.dhcp import BOOTP, DHCP                       # noqa: E402
from scapy.layers.inet import ICMP, IP, UDP, fragment           # noqa: E402
from scapy.layers.inet6 import (                                # noqa: E402
    ICMPv6EchoRequest, ICMPv6MLReport2, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6ND_Redirect, ICMPv6ND_RS,
    ICMPv6NDOptDstLLAddr, ICMPv6NDOptPrefixInfo, ICMPv6NDOptSrcLLAddr, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop)
from scapy.layers.l2 import ARP, LLC, SNAP, Dot1Q, Ether        # noqa: E402
from scapy.packet import Raw                                    # noqa: E402

GUEST = os.path.join(control.BUILD, "selftests", "frame_guest")
MAC, OTHER_MAC, ALL = "02:00:00:00:00:01", "02:00:00:00:00:02", "ff:ff:ff:ff:ff:ff"
IP4, OTHER4 = "10.0.0.1", "10.0.0.2"
IP6, OTHER6, LOCAL, OTHER_LOCAL = "2001:db8::1", "2001:db8::2", "fe80::ff:fe00:1", "fe80::ff:fe00:2"
KEYS = ",ip=%s,ip=%s" % (IP4, IP6)
PERMISSION = 13
PROMISC, MAC_CHANGE, ANTI_SPOOF = 1 << 0, 1 << 1, 1 << 3 | 1 << 4       # attributes of the port
ROCE = UDP(sport=49152, dport=4791) / Raw(bytes(40))


def eth(packet, src=MAC, **more):
    return Ether(src=src, dst=ALL, **more) / packet


def arp(**fields):
    return eth(ARP(**{"hwsrc": MAC, "psrc": IP4, "pdst": OTHER4, **fields}))


def nd(message, src=LOCAL, wrap=None):
    ip = IPv6(src=src, dst="ff02::1", hlim=255)
    return eth(ip / wrap / message if wrap else ip / message)


def dhcp(src="0.0.0.0", sport=68, dport=67, op=1):
    return eth(IP(src=src, dst="255.255.255.255") / UDP(sport=sport, dport=dport) / BOOTP(op=op, chaddr=bytes(6)) /
               DHCP(options=[("message-type", 1), "end"]))


def source(mac):
    return ICMPv6NDOptSrcLLAddr(lladdr=mac)


def target(mac):
    return ICMPv6NDOptDstLLAddr(lladdr=mac)


MARK = bytes(eth(IPv6(src=LOCAL, dst="ff02::1") / ICMPv6EchoRequest(data=bytes(100))))      # allowed with each ip=

ALLOWED = {
    "ARP request": arp(),
    "ARP reply": arp(op=2),
    "gratuitous ARP": arp(pdst=IP4),
    "ARP probe": arp(psrc="0.0.0.0", pdst=IP4),
    "IPv4": eth(IP(src=IP4, dst=OTHER4) / ICMP()),
    "IPv4 with a tag": eth(Dot1Q(vlan=5) / IP(src=IP4, dst=OTHER4) / ICMP()),
    "RoCE": eth(IP(src=IP4, dst=OTHER4) / ROCE),
    "DHCP discover": dhcp(),
    "DHCP renewal": dhcp(IP4),
    "IPv6": eth(IPv6(src=IP6, dst=OTHER6) / ICMPv6EchoRequest()),
    "duplicate address detection": nd(ICMPv6ND_NS(tgt=IP6), "::"),
    "duplicate address detection of link-local": nd(ICMPv6ND_NS(tgt=LOCAL), "::"),
    "MLD without an address": nd(ICMPv6MLReport2(records=[]), "::", IPv6ExtHdrHopByHop()),
    "router solicitation": nd(ICMPv6ND_RS() / source(MAC)),
    "neighbor solicitation": nd(ICMPv6ND_NS(tgt=OTHER6) / source(MAC), IP6),
    "neighbor advertisement": nd(ICMPv6ND_NA(tgt=IP6) / target(MAC), IP6),
}
DROPPED = {
    "another MAC address": eth(IP(src=IP4, dst=OTHER4) / ICMP(), OTHER_MAC),
    "ARP of the neighbor": arp(op=2, psrc=OTHER4, pdst=IP4),
    "ARP with the neighbor's MAC address": arp(op=2, hwsrc=OTHER_MAC),
    "gratuitous ARP of the neighbor": arp(psrc=OTHER4, pdst=OTHER4),
    "ARP probe for the neighbor": arp(psrc="0.0.0.0", pdst=OTHER4),
    "RARP": eth(ARP(op=3, hwsrc=MAC, psrc=IP4), type=0x8035),
    "IPv4 of the neighbor": eth(IP(src=OTHER4, dst=IP4) / ICMP()),
    "IPv4 of the neighbor with a tag": eth(Dot1Q(vlan=5) / IP(src=OTHER4, dst=IP4) / ICMP()),
    "two tags": eth(Dot1Q(vlan=5) / Dot1Q(vlan=6) / IP(src=IP4, dst=OTHER4) / ICMP()),
    "a fragment of the neighbor": eth(fragment(IP(src=OTHER4, dst=IP4) / Raw(bytes(100)), 48)[1]),
    "RoCE of the neighbor": eth(IP(src=OTHER4, dst=IP4) / ROCE),
    "RoCE by IPv6 of the neighbor": eth(IPv6(src=OTHER6, dst=IP6) / ROCE),
    "RoCE from the GID of an IPv4 address": eth(IPv6(src="::ffff:" + IP4, dst=IP6) / ROCE),
    "RoCE v1": eth(Raw(bytes(60)), type=0x8915),
    "IPv4 by SNAP": Ether(src=MAC, dst=ALL, type=60) / LLC() / SNAP(code=0x800) / IP(src=OTHER4, dst=IP4) / ICMP(),
    "IPv4 without an address": eth(IP(src="0.0.0.0", dst=OTHER4) / ICMP()),
    "DHCP server": dhcp(IP4, 67, 68, 2),
    "IPv6 of the neighbor": eth(IPv6(src=OTHER6, dst=IP6) / ICMPv6EchoRequest()),
    "IPv6 of the neighbor, link-local": eth(IPv6(src=OTHER_LOCAL, dst=IP6) / ICMPv6EchoRequest()),
    "duplicate address detection of the neighbor": nd(ICMPv6ND_NS(tgt=OTHER6), "::"),
    "neighbor advertisement of the neighbor": nd(ICMPv6ND_NA(tgt=OTHER6) / target(MAC)),
    "with the neighbor's MAC address": nd(ICMPv6ND_NA(tgt=IP6) / target(OTHER_MAC)),
    "behind an extension header": nd(ICMPv6ND_NA(tgt=OTHER6) / target(MAC), wrap=IPv6ExtHdrDestOpt()),
    "in a fragment": nd(ICMPv6ND_NA(tgt=IP6) / target(MAC), wrap=IPv6ExtHdrFragment()),
    "neighbor solicitation with the neighbor's MAC address": nd(ICMPv6ND_NS(tgt=OTHER6) / source(OTHER_MAC)),
    "router advertisement": nd(ICMPv6ND_RA() / ICMPv6NDOptPrefixInfo(prefix="2001:db8:1::", prefixlen=64) / source(MAC)),
    "redirect": nd(ICMPv6ND_Redirect(tgt=LOCAL, dst=OTHER6)),
    "DHCPv6 server": eth(IPv6(src=LOCAL, dst=OTHER_LOCAL) / UDP(sport=547, dport=546) / Raw(bytes(20))),
    "LLDP": eth(Raw(bytes(60)), type=0x88cc),
}


class AntiSpoof(unittest.TestCase):
    def start(self, keys, *options):
        """Start a daemon with a device and a port, and what is at their ends."""
        folder = tempfile.mkdtemp(prefix="test_antispoof.")
        self.addCleanup(shutil.rmtree, folder)
        device, here, there = (os.path.join(folder, name) for name in ("device", "here", "there"))
        self.end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.end.close)
        self.end.bind(here)
        self.end.settimeout(control.PATIENCE)
        self.daemon = control.Daemon(self, *options, "--device", "path=%s,mac=%s%s" % (device, MAC, keys), "--port",
                                     "dgram,local=%s,remote=%s" % (there, here), devices=())
        self.client = self.daemon.client()
        self.guest = subprocess.Popen([GUEST, device], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.leave)

    def leave(self):
        self.guest.stdin.close()
        self.assertEqual(self.guest.wait(control.PATIENCE), 0)
        self.guest.stdout.close()

    def tell(self, line):
        """Send the guest a command; return its answer, a number."""
        self.guest.stdin.write(line + "\n")
        self.guest.stdin.flush()
        name, number = self.guest.stdout.readline().split()
        self.assertEqual(name, line.split()[0])
        return int(number)

    def arrives(self, frame):
        """Send a frame, then one that arrives always; return true if the first one arrives. The work request succeeds."""
        sent = bytes(frame)
        self.assertEqual(self.tell("frame " + sent.hex()), 0)
        self.assertEqual(self.tell("frame " + MARK.hex()), 0)
        got = self.end.recv(2048)
        if got == MARK:
            return False
        self.assertEqual(got[:len(sent)], sent)
        self.assertEqual(self.end.recv(2048), MARK)
        return True

    def gid(self, address):
        packed = socket.inet_pton(socket.AF_INET6, address if ":" in address else "::ffff:" + address)
        return self.tell("gid " + packed.hex())

    def counted(self):
        return self.client.call("port.list")[0]["counters"]["tx_drop_spoof"]

    def test_untrusted(self):
        self.start(KEYS, "--untrusted")
        self.assertEqual(self.tell("flags") & (ANTI_SPOOF | PROMISC | MAC_CHANGE), ANTI_SPOOF)
        device, = self.client.call("device.list")
        self.assertEqual((device["anti_spoof"], device["promisc"], device["ip"]), (True, False, [IP4, IP6, LOCAL]))
        for name, frame in ALLOWED.items():
            with self.subTest(name):
                self.assertTrue(self.arrives(frame))
        self.assertEqual(self.counted(), 0)
        for count, (name, frame) in enumerate(DROPPED.items()):
            with self.subTest(name):
                self.assertFalse(self.arrives(frame))
                self.assertEqual(self.counted(), count + 1)
        for address in (IP4, IP6, LOCAL):
            self.assertEqual(self.gid(address), 0)
        for address in (OTHER4, OTHER6, OTHER_LOCAL, "::1"):
            self.assertEqual(self.gid(address), PERMISSION)
        self.assertEqual(len(re.findall("anti-spoof: frame dropped: ", self.daemon.said())), 1)

    def test_link_local_only(self):
        """The default of devices holds wherever --untrusted is, and the link-local address is always allowed."""
        self.start(",ip=link-local", "-u")
        self.assertEqual(self.client.call("device.list")[0]["ip"], [LOCAL])
        self.assertTrue(self.arrives(nd(ICMPv6ND_NA(tgt=LOCAL) / target(MAC))))
        self.assertFalse(self.arrives(ALLOWED["IPv4"]))
        self.assertEqual([self.gid(address) for address in (LOCAL, IP4, IP6)], [0, PERMISSION, PERMISSION])

    def test_mac_only(self):
        """Without ip= the option checks what it always did."""
        self.start(",anti-spoof=on")
        self.assertEqual(self.tell("flags") & (ANTI_SPOOF | PROMISC | MAC_CHANGE), 1 << 3 | PROMISC)
        self.assertIsNone(self.client.call("device.list")[0]["ip"])
        self.assertIn("anti-spoof checks MAC addresses only", self.daemon.said())
        for name, frame in {**ALLOWED, **DROPPED}.items():
            with self.subTest(name):
                self.assertEqual(self.arrives(frame), name != "another MAC address")
        self.assertEqual((self.gid(OTHER4), self.counted()), (0, 1))

    def test_trusted(self):
        """A device can be trusted among others that are not; it sends everything."""
        self.start(",anti-spoof=off,promisc=on", "--untrusted")
        self.assertEqual(self.tell("flags") & (ANTI_SPOOF | PROMISC | MAC_CHANGE), PROMISC | MAC_CHANGE)
        for name, frame in {**ALLOWED, **DROPPED}.items():
            with self.subTest(name):
                self.assertTrue(self.arrives(frame))
        self.assertEqual((self.gid(OTHER4), self.counted()), (0, 0))


if __name__ == "__main__":
    tap.main()
