# SPDX-License-Identifier: GPL-2.0
"""ornic in VM 0 and the kernel's Soft-RoCE in VM 1, on one Ethernet: each must understand the other's packets.

VM 1 has no ornic device. It gets a virtio-net interface whose other end is a port of ornicd's switch (--port stream), and
Soft-RoCE on it. Nothing in between is simulated: packets leave ornicd as bytes. Each test runs with ornic as the client and as
the server.

A file of this suite names the guest of VM 1 with use() before anything else.
"""
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
for folder in ("guest", "lib", ".."):
    sys.path.insert(0, os.path.join(HERE, "..", folder))
sys.dont_write_bytecode = True

import harness                  # noqa: E402

# By default a run has all tests with one release of Soft-RoCE and the most significant ones with the others.
EVERYTHING = os.environ.get("INTEROP") == "all"
PLACES = ("ornic_client", "rxe_client")
MAC = "02:00:00:99:00:01"       # of VM 1's interface on the Ethernet
# Room for path MTU 4096. Each VM has a link, because QEMU's arguments are the same for all; VM 0's is not used.
MTU = 9000
QEMU_ARGS = ["-netdev", "stream,id=wire,server=on,addr.type=unix,addr.path={run}/wire{i}.sock",
             "-device", "virtio-net-pci,netdev=wire,mac=02:00:00:99:00:0{i},host_mtu=%d" % MTU]
ORNICD_ARGS = ["--port", "stream,path={run}/wire1.sock,server=off,rxe-flush=on", "--control", "{run}/control{i}"]
# These tests judge packets, not races within a kernel; a machine with two processors takes longer to run four than two.
SMP = 1
# The filter of virtio-net learns about groups only some time after a member has joined.
START = """ip address add {rxe}/24 dev {link} && ip address add {rxe6}/64 dev {link} nodad && ip link set {link} mtu {mtu} allmulticast on up &&
ip route add 224.0.0.0/4 dev {link} && modprobe -a rdma_rxe ib_uverbs rdma_ucm && rdma link add rxe0 type rxe netdev {link}
until ping -c 1 -W 1 {ornic} && ping -c 1 -W 1 {ornic6}; do :; done"""


class Pair(harness.Pair):
    """VM 0 has ornic0, VM 1 has rxe0; their addresses differ in the last number as in other labs."""

    guest = None                # of VM 1

    def prepare(self):
        a, b = self.lab.vms
        self.link = {a: a.run("rdma link show ornic0/1").out.split("netdev")[1].split()[0],
                     b: b.run("basename $(dirname $(grep -l %s /sys/class/net/*/address))" % MAC).out.strip()}
        a.run("ip link set %s mtu %d" % (self.link[a], MTU))
        b.run(START.format(link=self.link[b], mtu=MTU, ornic=self.address(a), ornic6=self.address(a, 6), rxe=self.address(b),
                           rxe6=self.address(b, 6)), timeout=60)
        super().prepare()

    def programs(self, vm):
        return super().programs(vm) if vm is self.a else os.path.join(harness.BUILT, "guest", self.guest, "selftests")

    def device_of(self, vm):
        return self.device if vm is self.a else "rxe0"

    def rxe_again(self):
        """Recreate Soft-RoCE without the remains of kernel consumers."""
        self.b.run("rdma link delete rxe0; rdma link add rxe0 type rxe netdev " + self.link[self.b])


class Roles:
    """Mixin of a test case: server and client by place."""

    def ends(self, place):
        return (self.b, self.a) if place == "ornic_client" else (self.a, self.b)


def use(guest):
    """Set the guest release of VM 1; VM 0 keeps that of the run."""
    os.environ.pop("ORNIC_TEST_LAB", None)
    harness.PAIR = Pair
    Pair.guest = guest
    harness.OWN_LAB = {"guest": "%s,%s" % (harness.GUEST, guest), "devices": "1,0", "hosts": "one", "smp": SMP,
                       "boot": "snapshot", "qemu_args": QEMU_ARGS, "ornicd_args": ORNICD_ARGS}


def add(case, method, tests, places=PLACES):
    """Add a test method for each place and entry: name = arguments for case.method(place, ...)."""
    for place in places:
        for name, arguments in tests.items():
            def test(self, place=place, arguments=arguments):
                getattr(self, method)(place, *arguments)
            setattr(case, "test_%s_%s" % (name, place), test)
