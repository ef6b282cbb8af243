#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Multicast groups: one sender and several receivers, in both VMs and in one; the network interface joins too.

IPv4 only: the kernel's connection manager joins no IPv6 groups on RoCEv2. The device is tried with both in unit/test_mcast.
"""
import harness
import programs


class Multicast(harness.GuestTest):
    ornic_only = True

    def receive(self, group, *vms):
        """Start a receiver of ten datagrams in each of these VMs and wait until it has joined. All start at once, because mckey
        sleeps for seconds after it joined."""
        receivers = [self.spawn(vm, "mckey -m %s -b %s -C 10" % (group, self.p.address(vm)), 60) for vm in vms]
        for receiver in receivers:
            receiver.wait_for("receiving data transfers", 30)
        return receivers

    def send(self, vm, group):
        out = vm.run("mckey -m %s -b %s -s -C 10" % (group, self.p.address(vm)), timeout=60).out
        self.assertIn("data transfers complete", out)

    def deliver(self, group, sender, *vms):
        receivers = self.receive(group, *vms)
        self.send(sender, group)
        for receiver in receivers:
            self.assertEqual(receiver.wait(30), 0, receiver.text())

    def check(self, place, group, count):
        there, here = self.ends(place)
        self.deliver(group, here, *[there] * count)

    def test_both_vms(self):
        """Members on the sender's device and elsewhere receive the same datagrams."""
        self.deliver("239.9.9.9", self.a, self.a, self.b, self.a)

    def test_interface_joins(self):
        """The connection manager joins on the network interface, too, and leaves when the process is killed."""
        listed = "ip maddr show dev %s | grep -q 239.9.9.1" % self.p.netdev
        receiver, = self.receive("239.9.9.1", self.a)
        self.a.run(listed)
        receiver.signal(9)
        receiver.wait(30)
        self.a.run("until ! { %s; }; do sleep 0.05; done" % listed, timeout=20)

    def test_counters(self):
        """One packet out and one in, for any number of members."""
        counters = "cat /sys/class/infiniband/%s/ports/1/hw_counters/rdma_%%s_multicast" % self.device
        sent, heard = int(self.a.run(counters % "tx").out), int(self.b.run(counters % "rx").out)
        self.check("between", "239.9.9.2", 3)
        self.assertEqual(int(self.a.run(counters % "tx").out), sent + 10)
        self.assertEqual(int(self.b.run(counters % "rx").out), heard + 10)


class Loopback(programs.LocalTest):
    """Multicast loopback between members of one process and device: runs prog/verbs_mcast."""


programs.local_points(Loopback, "verbs_mcast", "loopback blocked all_blocked refused twice families".split())

harness.matrix(
    Multicast,
    ipv4=("239.7.7.7", 1),
    ipv4_many=("239.7.7.8", 4),
)

if __name__ == "__main__":
    harness.main()
