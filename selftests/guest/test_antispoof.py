#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Two VMs that do not trust each other (ornicd --untrusted): VM 1 claims addresses that are not its own, by the kernel's means and
by RDMA. It reaches nobody with them, VM 0 learns nothing of them, and both work with their own addresses: static, from DHCP, SLAAC.

A router and DHCP server is on a port to the outside: this test, which writes and reads frames.
"""
import contextlib
import ipaddress
import re
import socket
import struct
import time

import badnet
import harness

KEYS = "ip=10.88.0.{n},ip=fd88::{n},ip=2001:db8:{n}::/64"
harness.OWN_LAB = {"hosts": "one", "ornicd_args": badnet.ORNICD_ARGS + ["--untrusted"], "device_keys": KEYS}

CLAIMED = {4: "10.88.0.7", 6: "fd88::7"}
ROUTER_MAC, ROUTER = b"\x02\0\0\x88\0\x99", "fe80::99"
ALL_NODES_MAC, ALL_NODES = b"\x33\x33\0\0\0\1", "ff02::1"
PORT = 18515
WAIT = 20 * harness.SLOW
DISCOVER = b"\x35\1\1"          # a DHCP option: the type of the message


def prefix(n):
    """Return the prefix of the VM with this number in its addresses."""
    return "2001:db8:%d::" % n


def eui64(vm_prefix, n):
    """Return the address that a VM makes from a prefix and its MAC address (lab/daemon.py)."""
    return "%sff:fe88:%x" % (vm_prefix, n)


def checksum(data):
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def advertisement(prefixes):
    """Return the frame of a router advertisement: on-link prefixes from which hosts make addresses."""
    options = b"".join(struct.pack(">BBBBIII16s", 3, 4, 64, 0xc0, 86400, 86400, 0, socket.inet_pton(socket.AF_INET6, each))
                       for each in prefixes)
    message = struct.pack(">BBHBBHII", 134, 0, 0, 64, 0, 0, 0, 0) + options
    ends = socket.inet_pton(socket.AF_INET6, ROUTER) + socket.inet_pton(socket.AF_INET6, ALL_NODES)
    wrong = checksum(ends + struct.pack(">II", len(message), 58) + message)
    message = message[:2] + struct.pack(">H", wrong) + message[4:]
    return (ALL_NODES_MAC + ROUTER_MAC + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(message), 58, 255) + ends + message)


class AntiSpoof(harness.GuestTest):
    ornic_only = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.control = badnet.Client(cls.p.lab.state.path("control0"))
        cls.addClassCleanup(cls.control.close)
        cls.dev = cls.p.netdev
        cls.here, there = (cls.p.lab.state.path(name) for name in ("router", "segment"))
        cls.router = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        cls.router.bind(cls.here)
        cls.control.call("port.add", spec="dgram,local=%s,remote=%s,name=router" % (there, cls.here))
        cls.there = there

    def spoofed(self, vm):
        """Return the number of frames that the device of a VM was not allowed to send."""
        return self.control.call("port.list")[vm.number]["counters"]["tx_drop_spoof"]

    def gids(self, vm):
        """Return the GIDs of a VM's device as addresses."""
        text = vm.run("cat /sys/class/infiniband/%s/ports/1/gids/*" % self.device).out
        packed = {bytes.fromhex(line.replace(":", "")) for line in text.split()} - {bytes(16)}
        return {socket.inet_ntop(socket.AF_INET, each[12:]) if each.startswith(bytes(10) + b"\xff\xff") else
                socket.inet_ntop(socket.AF_INET6, each) for each in packed}

    def claim(self, address, length):
        """Give VM 1 an address that its device does not allow; wait until the RDMA device has rejected it."""
        self.addCleanup(self.b.run, "ip address del %s/%d dev %s" % (address, length, self.dev), check=False)
        self.b.run("dmesg -C; ip address add %s/%d dev %s %s" % (address, length, self.dev, "nodad" * (":" in address)))
        gid = ipaddress.IPv6Address(address if ":" in address else "::ffff:" + address).exploded
        self.b.run("until dmesg | grep -qF 'unable to add gid %s error=-1'; do sleep 0.05; done" % gid, WAIT)
        self.assertNotIn(address, self.gids(self.b))

    def nobody(self, vm, address):
        """Check that VM does not reach an address, and does not know its MAC address."""
        vm.run("ip neigh flush dev %s" % self.dev)
        self.assertNotEqual(vm.run("ping -c 2 -i 0.2 -W 1 %s" % address, check=False).rc, 0)
        self.assertNotIn("lladdr", vm.run("ip neigh show %s dev %s" % (address, self.dev)).out)

    def own_works(self):
        """Check that the VMs reach each other from their own addresses, by RDMA too."""
        for family in (4, 6):
            for place in ((self.a, self.b), (self.b, self.a)):
                here, there = (self.p.address(vm, family) for vm in place)
                place[0].run("ping -c 2 -i 0.2 -W 5 -I %s %s" % (here, there), timeout=WAIT)
        self.exchange("between", "rping -s -a %s -V -C 5" % self.p.address(self.b), "rping -c -a {addr} -V -C 5", harness.cm_listens)
        self.exchange("between", "rping -s -a %s -V -C 5" % self.p.address(self.b, 6), "rping -c -a {addr6} -V -C 5",
                      harness.cm_listens)

    def heard(self, send, wanted):
        """Call send() until a frame arrives at the router for which wanted() is true; return it. The socket holds a few frames."""
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            self.router.settimeout(0)
            with contextlib.suppress(BlockingIOError):
                while self.router.recv(65536):
                    pass
            send()
            self.router.settimeout(1)
            with contextlib.suppress(TimeoutError):
                while not wanted(got := self.router.recv(65536)):
                    pass
                return got
        return self.fail("no such frame after %d s" % WAIT)

    def test_own(self):
        """All that the kernel does by itself with allowed addresses is allowed, and RDMA has all of them."""
        before = self.spoofed(self.a), self.spoofed(self.b)
        self.own_works()
        for vm in (self.a, self.b):
            n = vm.number + 1
            self.assertLessEqual({self.p.address(vm), self.p.address(vm, 6), eui64("fe80::", n)}, self.gids(vm))
            vm.run("ip link set {0} down; ip link set {0} up; ip -6 address replace {1}/64 dev {0} nodad".format(
                self.dev, self.p.address(vm, 6)))
            self.wait_port("ACTIVE", vm)
            harness.wait_usable(vm, self.device)
        self.own_works()
        link_local = eui64("fe80::", 1)
        self.b.run("ping -c 2 -i 0.2 -W 5 %s%%%s" % (link_local, self.dev), timeout=WAIT)
        index = [vm.run("grep -l fe80: /sys/class/infiniband/%s/ports/1/gids/* | head -n 1" % self.device).out.strip().rsplit("/")[-1]
                 for vm in (self.b, self.a)]
        server, client = ["ibv_rc_pingpong -d %s -g %s -n 100 -c" % (self.device, each) for each in index]
        self.exchange("between", server, client + " {addr}", PORT)
        self.assertEqual((self.spoofed(self.a), self.spoofed(self.b)), before)

    def test_claimed_address(self):
        """Nobody is reached from an address that is not allowed, and nobody learns it."""
        for family, length in ((4, 24), (6, 64)):
            with self.subTest("IPv%d" % family):
                claimed, before = CLAIMED[family], self.spoofed(self.b)
                self.claim(claimed, length)
                self.nobody(self.a, claimed)
                ping = "ping -c 2 -i 0.2 -W 1 -I %s %s" % (claimed, self.p.address(self.a, family))
                self.assertNotEqual(self.b.run(ping, check=False).rc, 0)
                self.assertGreater(self.spoofed(self.b), before)
        shown = re.search(r"tx_drop_spoof: (\d+)", self.b.run("ethtool -S " + self.dev).out)
        self.assertGreater(int(shown.group(1)), 0)
        self.own_works()

    def test_neighbors_address(self):
        """VM 1 takes the addresses of VM 0: VM 0 keeps its connections, and DAD finds no duplicate."""
        for family, length in ((4, 24), (6, 64)):
            with self.subTest("IPv%d" % family):
                mine = self.p.address(self.a, family)
                self.claim(mine, length)
                self.b.run("ping -c 2 -i 0.2 -W 1 -I %s %s" % (mine, CLAIMED[family]), check=False)
                self.a.run("ip address del {0}/{1} dev {2}; ip address add {0}/{1} dev {2}".format(mine, length, self.dev))
                self.a.run("until ! ip address show dev %s | grep -q tentative; do sleep 0.05; done" % self.dev, WAIT)
                self.assertNotIn("dadfailed", self.a.run("ip address show dev " + self.dev).out)
                self.b.run("ip address del %s/%d dev %s" % (mine, length, self.dev))
        harness.wait_usable(self.a, self.device)
        self.own_works()

    def test_rdma_from_claimed(self):
        """rdma_cm has no device for an address that is not allowed, neither to connect from nor to listen at."""
        for family, length in ((4, 24), (6, 64)):
            with self.subTest("IPv%d" % family):
                claimed = CLAIMED[family]
                self.claim(claimed, length)
                server = self.spawn(self.a, "rping -s -a %s -C 1" % self.p.address(self.a, family), 60)
                harness.cm_listens(self.a)
                client = "timeout 10 rping -c -I %s -a %s -C 1" % (claimed, self.p.address(self.a, family))
                self.assertNotEqual(self.b.run(client, check=False, timeout=30).rc, 0)
                self.reap(server)
                server = self.spawn(self.b, "rping -s -a %s -C 1" % claimed, 60)
                client = "timeout 10 rping -c -a %s -C 1" % claimed
                self.assertNotEqual(self.a.run(client, check=False, timeout=30).rc, 0)
                self.reap(server)

    def test_pingpong_from_claimed(self):
        """ibv_rc_pingpong finds no GID with the address; with the index of none it fails, too."""
        self.claim(CLAIMED[4], 24)
        gids = "/sys/class/infiniband/%s/ports/1/gids" % self.device
        self.assertNotEqual(self.b.run("grep -rq ffff:0a58:0007 %s" % gids, check=False).rc, 0)
        empty = self.b.run("grep -lx 0000:0000:0000:0000:0000:0000:0000:0000 %s/* | head -n 1" % gids).out.strip().rsplit("/")[-1]
        server = self.spawn(self.a, "ibv_rc_pingpong -d %s -g %d" % (self.device, self.p.gid_index(self.a)), 60)
        self.a.wait_listen(PORT, 30)
        client = "timeout 10 ibv_rc_pingpong -d %s -g %s %s" % (self.device, empty, self.p.address(self.a))
        self.assertNotEqual(self.b.run(client, check=False, timeout=30).rc, 0)
        self.reap(server)

    def test_slaac(self):
        """Of two prefixes that a router offers, each VM can use its own, although it makes addresses from both."""
        made = {vm: [eui64(prefix(n), vm.number + 1) for n in (vm.number + 1, 2 - vm.number)] for vm in (self.a, self.b)}
        self.addCleanup(self.forget, made)
        for vm, addresses in made.items():
            until = " && ".join("ip -6 address show dev %s scope global -tentative | grep -q %s/64" % (self.dev, each)
                                for each in addresses)
            self.router.sendto(advertisement([prefix(1), prefix(2)]), self.there)
            vm.run("until %s; do sleep 0.05; done" % until, WAIT)
        for vm, peer in ((self.a, self.b), (self.b, self.a)):
            own, other = made[vm]
            vm.run("ping -c 2 -i 0.2 -W 5 -I %s %s" % (own, made[peer][0]), timeout=WAIT)
            self.assertNotEqual(vm.run("ping -c 2 -i 0.2 -W 1 -I %s %s" % (other, made[peer][0]), check=False).rc, 0)
            self.assertEqual({own, other} & self.gids(vm), {own})
        server = "rping -s -a %s -V -C 5" % made[self.b][0]
        self.exchange("between", server, "rping -c -I %s -a %s -V -C 5" % (made[self.a][0], made[self.b][0]), harness.cm_listens)

    def forget(self, made):
        for vm, addresses in made.items():
            vm.run("; ".join("ip address del %s/64 dev %s" % (each, self.dev) for each in addresses), check=False)

    def test_dhcp(self):
        """A client that has no address yet finds its server, and probes for the address that it got."""
        mine = self.p.address(self.b)
        client = "busybox udhcpc -i %s -f -n -q -t 1 -T 1 -s /bin/true" % self.dev
        self.addCleanup(self.b.run, "ip address replace %s/24 dev %s" % (mine, self.dev))
        self.b.run("ip -4 address flush dev " + self.dev)
        found = self.heard(lambda: self.b.run(client, check=False),
                           lambda frame: DISCOVER in frame and frame[12:14] == b"\x08\x00")
        self.assertEqual(found[26:38], bytes(4) + b"\xff" * 4 + b"\0\x44\0\x43")
        before = self.spoofed(self.b)
        self.b.run("busybox arping -D -c 2 -w 2 -I %s %s" % (self.dev, mine))
        self.assertEqual(self.spoofed(self.b), before)
        # A probe for the neighbor's address would make it give the address up.
        self.b.run("busybox arping -D -c 2 -w 2 -I %s %s" % (self.dev, self.p.address(self.a)), check=False)
        self.assertGreater(self.spoofed(self.b), before)
        self.b.run("ip address add %s/24 dev %s" % (mine, self.dev))
        harness.wait_usable(self.b, self.device)
        self.own_works()


if __name__ == "__main__":
    harness.main()
