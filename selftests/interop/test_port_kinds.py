#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Each kind of port that the other files of this suite do not use, with a real peer behind it.

VM 1 has a network card for each kind that QEMU supports; only one is up at a time, because all are on the segment of the same
daemon. Behind the tap is the host's network stack, in a separate namespace.
"""
import os
import subprocess

import peers

peers.use("trixie")

# pylint: disable=wrong-import-position
import harness                                  # noqa: E402
from lab import hosts                           # noqa: E402
from control import Client                      # noqa: E402

NETDEV = "02:00:00:98:%02d:0%s"                 # number of the kind, of the VM
HUB, SPOKE = hosts.free_udp_ports(2)
# Arguments of QEMU and the daemon. VM 0 gets the cards, too, but they are not connected.
KINDS = dict(
    dgram=("dgram,id=dgram,local.type=unix,local.path={run}/card{i},remote.type=unix,remote.path={run}/port{i}",
           "dgram,name=dgram,local={run}/port1,remote={run}/card1"),
    udp=("dgram,id=udp,local.type=inet,local.host=127.0.1.{i},local.port=%d,remote.type=inet,remote.host=127.0.0.1,remote.port=%d"
         % (SPOKE, HUB),
         "udp,name=udp,local=127.0.0.1:%d,remote=127.0.1.1:%d" % (HUB, SPOKE)),
)
MTU = 1500
BEHIND = 9                                      # last number of the addresses behind the tap
TAP_UP = "ip address add {ip4}/24 dev {tap} && ip address add {ip6}/64 dev {tap} nodad && ip link set {tap} up"


class Pair(peers.Pair):
    def prepare(self):
        harness.Pair.prepare(self)              # each test creates Soft-RoCE


harness.PAIR = Pair
harness.OWN_LAB["qemu_args"] = [
    word for number, (name, (card, _)) in enumerate(KINDS.items())
    for word in ("-netdev", card, "-device", "virtio-net-pci,netdev=%s,mac=%s" % (name, NETDEV % (number, "{i}")))]
harness.OWN_LAB["boot"] = "cold"                # the ports differ each time, and a snapshot is for one command line
harness.OWN_LAB["ornicd_args"] = [word for _, port in KINDS.values() for word in ("--port", port)] + ["--control", "{run}/control{i}"]


class Kinds(peers.Roles, harness.GuestTest):
    def card(self, name):
        """Run Soft-RoCE on VM 1's card on that port: it talks to ornic by IPv4 and IPv6, RDMA in both directions."""
        mac = NETDEV % (list(KINDS).index(name), 1)
        link = self.b.run("basename $(dirname $(grep -l %s /sys/class/net/*/address))" % mac).out.strip()
        self.addCleanup(self.b.run, "rdma link delete rxe0; ip address flush dev %s; ip link set %s down" % (link, link))
        address = self.p.address
        self.b.run(peers.START.format(link=link, mtu=MTU, ornic=address(self.a), ornic6=address(self.a, 6), rxe=address(self.b),
                                      rxe6=address(self.b, 6)), timeout=60)
        for place in peers.PLACES:
            for word in ("addr", "addr6"):
                self.exchange(place, "rping -s -a %s -V -C 10" % address(self.ends(place)[0], 4 if word == "addr" else 6),
                              "rping -c -a {%s} -V -C 10" % word, harness.cm_listens)

    def test_dgram(self):
        self.card("dgram")

    def test_udp(self):
        self.card("udp")

    def test_tap(self):
        """The host's network stack exchanges the smallest and largest frames with ornic's interface."""
        if os.geteuid():
            self.skipTest("only root may have a network namespace")
        control = Client(self.p.lab.state.path("control0"))
        self.addCleanup(control.close)
        space = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(space.communicate)      # it ends with its input
        space.stdout.readline()
        name = "orn%d" % os.getpid()
        control.call("port.add", spec="tap,ifname=%s,name=tap" % name)
        self.addCleanup(control.call, "port.del", name="tap")
        subprocess.run(["ip", "link", "set", name, "netns", str(space.pid)], check=True)
        ip4, ip6 = "%s.0.%d" % (self.p.net, BEHIND), "fd%s::%d" % (self.p.net[3:], BEHIND)
        subprocess.run(["nsenter", "--net=/proc/%d/ns/net" % space.pid, "sh", "-ec", TAP_UP.format(tap=name, ip4=ip4, ip6=ip6)], check=True)
        for size, address in ((10, ip4), (MTU - 28, ip4), (10, ip6), (MTU - 48, ip6)):
            self.a.run("ping -c 5 -i 0.1 -M do -s %d %s" % (size, address), timeout=60)


if __name__ == "__main__":
    harness.main()
