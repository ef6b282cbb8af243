#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The RDMA port follows its network interface: link, speed, MTU, MAC, addresses, and VLAN interfaces on top of it."""
import re

import harness
from harness import cm_listens
from loop import Loop

PINGPONG = 18515
IPV6_MIN_MTU = 1280              # RFC 8200, section 5


class PortTest(harness.GuestTest):
    ornic_only = True

    def setUp(self):
        super().setUp()
        self.dev = self.p.netdev
        self.folder = "/sys/class/infiniband/%s/ports/1" % self.device

    def gids(self, vm, netdev=None):
        """Return the GIDs of an interface by index."""
        text = vm.run("cd %s; grep -H . gid_attrs/ndevs/* 2>/dev/null | while IFS=: read file dev; do "
                      "echo ${file##*/} $dev $(cat gids/${file##*/}); done" % self.folder).out
        found = [line.split() for line in text.splitlines()]
        return {int(index): gid for index, dev, gid in found if dev == (netdev or self.dev)}

    def index_of(self, vm, address, netdev=None):
        """Return the index of the GID of an IPv4 address; it may take a moment to appear."""
        end = "%02x%02x:%02x%02x" % tuple(int(part) for part in address.split("."))
        vm.run("until cat %s/gids/* | grep -q 'ffff:%s$'; do sleep 0.05; done" % (self.folder, end), timeout=20)
        found = [index for index, gid in self.gids(vm, netdev).items() if gid.endswith("ffff:" + end)]
        self.assertEqual(len(found), 1, "GIDs of %s" % address)
        return found[0]

    def wait_gone(self, vm, end):
        vm.run("while cat %s/gids/* | grep -q '%s$'; do sleep 0.05; done" % (self.folder, end), timeout=20)

    def set_mtu(self, mtu, vms=None):
        for vm in vms or (self.a, self.b):
            vm.run("ip link set %s mtu %d" % (self.dev, mtu))
            if mtu >= IPV6_MIN_MTU:     # with a smaller MTU the interface loses its IPv6 addresses
                self.restore_ipv6(vm)

    def watch(self):
        """Start ibv_asyncwatch in VM a."""
        process = self.spawn(self.a, "stdbuf -o0 ibv_asyncwatch -d " + self.device, 60)
        process.wait_for("async event FD", 30)
        return process

    def restore_ipv6(self, vm):
        vm.run("ip -6 addr replace %s/64 dev %s nodad" % (self.p.address(vm, 6), self.dev))

    def link_up_again(self):
        self.a.run("ip link set %s up" % self.dev)
        self.restore_ipv6(self.a)
        self.wait_port("ACTIVE")


class Port(PortTest):
    def test_speed_and_width(self):
        """verbs, sysfs and ethtool report the same link."""
        text = self.a.run("ibv_devinfo -v -d " + self.device).out
        self.assertRegex(text, r"active_width:\s+4X \(2\)")
        self.assertRegex(text, r"active_speed:\s+25.0 Gbps \(32\)")
        self.assertEqual(self.a.run("cat %s/rate" % self.folder).out.strip(), "100 Gb/sec (4X EDR)")
        self.assertIn("Speed: 100000Mb/s", self.a.run("ethtool " + self.dev).out)

    def test_mtu(self):
        """The path MTU is the largest payload that fits after the headers; queue pairs with a path MTU that still fits survive.
        ORN-PORT-16"""
        self.addCleanup(self.set_mtu, 1500)
        loop = Loop(self, self.a)
        for mtu, active in ((9000, 4096), (4192, 4096), (4191, 2048), (1500, 1024), (600, 256), (1500, 1024)):
            self.set_mtu(mtu, [self.a])
            self.assertRegex(self.a.run("ibv_devinfo -d " + self.device).out, r"active_mtu:\s+%d " % active)
            if active >= 1024:
                loop.do("write 5000 2")
        self.assertIn("link_layer", self.a.run("ibv_devinfo").out)

    def test_events_of_link(self):
        """Link down and link up: one event each, also while a process listens on the interface."""
        self.addCleanup(self.link_up_again)
        watch = self.watch()
        for _ in range(2):
            self.a.run("ip link set %s down" % self.dev)
            self.wait_port("DOWN")
            self.link_up_again()
        watch.wait_for(r"(?s)(PORT_ACTIVE.*){2}", 20)
        self.a.run("sleep 0.5")
        self.assertEqual(re.findall(r"IBV_EVENT_(PORT\w+)", watch.text()), ["PORT_ERR", "PORT_ACTIVE"] * 2)

    def test_no_events_of_mtu(self):
        """New queues of the interface cause no events of the port."""
        self.addCleanup(self.set_mtu, 1500)
        watch = self.watch()
        self.set_mtu(4200)
        self.set_mtu(1500)
        self.a.run("ping -c 1 -W 5 " + self.p.address(self.b))
        self.a.run("ip addr add 10.88.9.1/24 dev %s; ip addr del 10.88.9.1/24 dev %s" % (self.dev, self.dev))
        watch.wait_for("GID_CHANGE", 20)
        self.assertNotIn("EVENT_PORT", watch.text())

    def test_carrier_stays_with_mtu(self):
        self.addCleanup(self.set_mtu, 1500)
        before = self.a.run("cat /sys/class/net/%s/carrier_changes" % self.dev).out
        self.set_mtu(9000)
        self.set_mtu(1500)
        self.assertEqual(self.a.run("cat /sys/class/net/%s/carrier_changes" % self.dev).out, before)

    def test_addresses(self):
        """GIDs follow IPv4 and IPv6 addresses, and processes get events."""
        watch = self.watch()
        self.a.run("ip addr add 10.88.7.1/24 dev %s; ip -6 addr add fd99::7/64 dev %s nodad" % (self.dev, self.dev))
        index = self.index_of(self.a, "10.88.7.1")
        self.assertIn("fd99:0000:0000:0000:0000:0000:0000:0007", self.gids(self.a).values())
        self.assertEqual(self.a.run("cat %s/gid_attrs/types/%d" % (self.folder, index)).out.strip(), "RoCE v2")
        Loop(self, self.a, index).do("write 100 1")
        self.a.run("ip addr del 10.88.7.1/24 dev %s; ip -6 addr del fd99::7/64 dev %s" % (self.dev, self.dev))
        watch.wait_for(r"(?s)(GID_CHANGE.*){4}", 20)

    def test_address_removed_under_queue_pair(self):
        """A connection fails at once when its address is removed, because it must not send; the GID can return. ORN-PORT-3"""
        self.a.run("ip addr add 10.88.8.1/24 dev " + self.dev)
        loop = Loop(self, self.a, self.index_of(self.a, "10.88.8.1"))
        loop.do("write 100 1")
        self.a.run("ip addr del 10.88.8.1/24 dev " + self.dev)
        self.wait_gone(self.a, "ffff:0a58:0801")
        self.assertEqual(loop.ask("write 100 1"), "failed status 2")
        loop.end()
        self.a.run("ip addr add 10.88.8.1/24 dev " + self.dev)
        self.addCleanup(self.a.run, "ip addr del 10.88.8.1/24 dev " + self.dev)
        Loop(self, self.a, self.index_of(self.a, "10.88.8.1")).do("write 100 1")

    def test_rejected_doorbell(self):
        """A doorbell for a queue of another process has no effect and is counted; the kernel gets a report once per second.
        ORN-EQ-17"""
        stat = "rdma statistic show link %s/1 >/dev/null; cat /sys/class/infiniband/%s/hw_counters/db_rejected" % (self.device, self.device)
        said = "dmesg | grep -c 'doorbell rejected' || true"
        loop, victim = Loop(self, self.a), Loop(self, self.a)
        before, heard = int(self.a.run(stat).out), int(self.a.run(said).out)
        for _ in range(20):
            loop.do("ring %d" % victim.qpns[0])
        self.a.run("until [ $(dmesg | grep -c 'doorbell rejected') -gt %d ]; do sleep 0.05; done" % heard, timeout=10)
        self.assertEqual(int(self.a.run(stat).out) - before, 20)
        self.assertLess(int(self.a.run(said).out) - heard, 5)
        for each in (loop, victim):
            each.do("write 100 2")

    def test_mac_change(self):
        """New connections use the new address; old connections fail."""
        old = self.a.run("cat /sys/class/net/%s/address" % self.dev).out.strip()
        self.addCleanup(self.b.run, "ip neigh flush dev " + self.dev)
        self.addCleanup(self.a.run, "ip link set %s address %s" % (self.dev, old))
        former = Loop(self, self.a)
        former.do("write 100 1")
        self.a.run("ip link set %s address 02:00:00:99:00:01" % self.dev)
        self.b.run("ip neigh flush dev " + self.dev)
        self.assertTrue(self.gids(self.a)[0].endswith("0000:00ff:fe99:0001"), "default GID")
        self.assertRegex(former.ask("write 100 1"), "failed status (2|12)")
        former.end()
        self.exchange("between", "rping -s -a %s -V -C 5" % self.p.address(self.b), "rping -c -a {addr} -V -C 5", cm_listens)


class Vlan(PortTest):
    ID = 100

    def setUp(self):
        super().setUp()
        self.vlan = "%s.%d" % (self.dev, self.ID)
        for vm in (self.a, self.b):
            self.addCleanup(vm.run, "ip link del %s" % self.vlan, check=False)
            self.make(vm, self.ID, self.address(vm))

    def make(self, vm, number, address):
        vm.run("modprobe 8021q; ip link add link %s name %s.%d type vlan id %d && ip addr add %s/24 dev %s.%d && ip link set %s.%d up"
               % (self.dev, self.dev, number, number, address, self.dev, number, self.dev, number))

    def address(self, vm):
        return "10.99.0.%d" % (vm.number + 1)

    def index(self, vm):
        return self.index_of(vm, self.address(vm), self.vlan)

    def talk(self, server, client, listening):
        """Run exchange() between the VMs with {addr} and {gid} of this VLAN."""
        self.exchange("between", server.format(addr=self.address(self.b), gid=self.index(self.b)),
                      client.format(addr=self.address(self.b), gid=self.index(self.a)), listening)

    def ping(self, size):
        self.a.run("ping -n -c 2 -i 0.1 -W 5 -M do -s %d %s" % (size, self.address(self.b)))

    def test_frames(self):
        """Full frames with a tag, both ways."""
        for size in (0, 56, 1471, 1472):
            self.ping(size)

    def test_jumbo_frames(self):
        self.addCleanup(self.set_mtu, 1500)
        self.set_mtu(9000)
        for vm in (self.a, self.b):
            vm.run("ip link set %s mtu 9000" % self.vlan)
        self.ping(8972)
        self.talk("ibv_rc_pingpong -d %s -g {gid} -n 20 -m 4096 -c" % self.device,
                  "ibv_rc_pingpong -d %s -g {gid} -n 20 -m 4096 -c {addr}" % self.device, PINGPONG)

    def test_tcp(self):
        server = self.spawn(self.b, "iperf3 -s -1", 60)
        self.b.wait_listen(5201, 30)
        self.a.run("iperf3 -c %s -n 4M" % self.address(self.b), timeout=60)
        server.wait(30)

    def test_rc(self):
        self.talk("ibv_rc_pingpong -d %s -g {gid} -n 50 -c" % self.device,
                  "ibv_rc_pingpong -d %s -g {gid} -n 50 -c {addr}" % self.device, PINGPONG)

    def test_ud(self):
        self.talk("ibv_ud_pingpong -d %s -g {gid} -n 50 -c" % self.device,
                  "ibv_ud_pingpong -d %s -g {gid} -n 50 -c {addr}" % self.device, PINGPONG)

    def test_rping(self):
        """The connection manager finds the VLAN's GID in its datagrams."""
        self.talk("rping -s -a {addr} -V -C 10", "rping -c -a {addr} -V -C 10", cm_listens)

    def test_udaddy(self):
        self.talk("udaddy -b {addr}", "udaddy -s {addr}", cm_listens)

    def test_priority(self):
        """A queue pair with a service level works on a VLAN, also within one VM."""
        self.assertIn("sl 5", Loop(self, self.a, self.index(self.a), "0 5").do("query"))

    def test_other_vlan_is_apart(self):
        """Same GID, other VLAN: neither frames nor RoCE packets arrive; they are counted as badly addressed."""
        self.b.run("ip link del %s" % self.vlan)
        other = "%s.%d" % (self.dev, self.ID + 1)
        self.addCleanup(self.b.run, "ip link del %s" % other)
        self.make(self.b, self.ID + 1, self.address(self.b))
        self.index_of(self.b, self.address(self.b), other)
        self.assertNotEqual(self.a.run("ping -n -c 1 -W 1 " + self.address(self.b), check=False).rc, 0)
        mac = self.b.run("cat /sys/class/net/%s/address" % self.dev).out.strip()
        self.a.run("ip neigh replace %s lladdr %s dev %s" % (self.address(self.b), mac, self.vlan))
        bad = "rdma statistic show link %s/1 | grep -o 'bad_gid [0-9]*'" % self.device
        before = self.b.run(bad).out
        self.assertNotEqual(self.a.run("timeout 5 rping -c -a %s -C 1" % self.address(self.b), check=False).rc, 0)
        self.assertNotEqual(self.b.run(bad).out, before)

    def test_interface_removed_under_queue_pair(self):
        index = self.index(self.a)
        loop = Loop(self, self.a, index)
        loop.do("send 100 2")
        self.a.run("ip link del %s" % self.vlan)
        loop.ask("send 100 1")                          # may succeed or fail; neither hangs nor disturbs others
        loop.end()
        self.wait_gone(self.a, "ffff:0a63:0001")


if __name__ == "__main__":
    harness.main()
