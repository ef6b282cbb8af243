#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Soft-RoCE of the stock kernel and ornic on one Ethernet: whatever the one says on the wire, the other understands.

This needs its own lab: VM 1 gets a virtio-net interface whose other end is a port of ornicd's switch (--port stream), and Soft-RoCE
on it. Each test runs with ornic as the client and as the server. Between the two nothing is faked: packets leave ornicd as bytes.
"""
import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(TOP, "tools")]

from lab.topology import Lab    # noqa: E402
import tap                      # noqa: E402

PORT = 18515
PATIENCE = 180
BUILT = os.environ.get("O", os.path.join(TOP, "build"))
PAYLOAD = os.path.join(BUILT, "guest", "trixie")
# A wire for each VM, since QEMU's arguments are the same for all; VM 0's is not used.
QEMU_ARGS = ["-netdev", "stream,id=wire,server=on,addr.type=unix,addr.path={run}/wire{i}.sock",
             "-device", "virtio-net-pci,netdev=wire,mac=02:00:00:99:00:0{i}"]
ORNICD_ARGS = ["--port", "stream,path={run}/wire1.sock,server=off"]
ADDRESS = {"ornic": "10.88.0.1", "rxe": "10.88.0.102"}
ADDRESS6 = {"ornic": "fd88::1", "rxe": "fd88::102"}
RXE = """ip link set $(rdma link show ornic0/1 | sed 's/.*netdev //') down
link=$(basename $(dirname $(grep -l 02:00:00:99:00:01 /sys/class/net/*/address)))
ip address add {rxe}/24 dev $link && ip address add {rxe6}/64 dev $link nodad && ip link set $link up mtu {mtu} &&
ip route add 224.0.0.0/4 dev $link &&
modprobe -a rdma_rxe ib_uverbs rdma_ucm && rdma link add rxe0 type rxe netdev $link
until ping -c 1 -W 1 {ornic} && ping -c 1 -W 1 {ornic6}; do :; done"""


class Rxe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Lab.up(2, name="rxe-%d" % os.getpid(), ornicd=os.path.join(BUILT, "ornicd"), modules=PAYLOAD, provider=PAYLOAD,
                         ornicd_args=ORNICD_ARGS, qemu_args=QEMU_ARGS)
        cls.addClassCleanup(cls.lab.down)
        cls.vm = {"ornic": cls.lab.vm(0), "rxe": cls.lab.vm(1)}
        cls.device = {"ornic": "ornic0", "rxe": "rxe0"}
        cls.vm["rxe"].run(RXE.format(ornic=ADDRESS["ornic"], ornic6=ADDRESS6["ornic"], rxe=ADDRESS["rxe"], rxe6=ADDRESS6["rxe"],
                                     mtu=1500), timeout=60)
        cls.gid = {name: int(re.search(r"gids/(\d+):0000:0000:0000:0000:0000:ffff", cls.vm[name].run(
            "grep . /sys/class/infiniband/%s/ports/1/gids/*" % cls.device[name]).out).group(1)) for name in cls.vm}

    def setUp(self):
        self.heard = {name: set(vm.complaints()) for name, vm in self.vm.items()}
        self.addCleanup(self.check_kernels)

    def check_kernels(self):
        self.assertTrue(self.lab.daemons_alive(), "ornicd is dead: " + self.lab.log()[-1500:])
        for name, vm in self.vm.items():
            self.assertEqual(set(vm.complaints()) - self.heard[name], set(), name)

    def exchange(self, server, client, serve, ask, listening):
        """Runs serve on VM server and then ask on VM client."""
        waiting = self.vm[server].spawn(serve, timeout=PATIENCE)
        self.addCleanup(waiting.kill)
        if listening:
            self.vm[server].wait_listen(listening, 60)
        else:
            self.vm[server].run("until rdma res show cm_id | grep -q LISTEN; do sleep 0.05; done", timeout=60)
        result = self.vm[client].run(ask, timeout=PATIENCE, check=False)
        said = "client %s: %s\n%s\nserver: %s\nornicd: %s" % (client, ask, (result.out + result.err)[-1500:], waiting.text()[-1500:],
                                                              self.lab.log()[-1500:])
        self.assertEqual(result.rc, 0, said)
        self.assertEqual(waiting.wait(PATIENCE), 0, said)
        return result.out

    def perftest(self, client, server, program, options):
        command = "%s -d {device} -x {gid} -F -p %d -m 1024 -u 18 %s" % (program, PORT, options)
        serve, ask = (command.format(device=self.device[name], gid=self.gid[name]) for name in (server, client))
        out = self.exchange(server, client, serve, "%s %s" % (ask, ADDRESS[server]), PORT)
        self.assertRegex(out, r"(?m)^\s*\d+\s+\d+\s+[\d.inf]+\s", "no row of results: " + out)

    def cm(self, client, server, serve, ask):
        address = {"addr": ADDRESS[server], "addr6": ADDRESS6[server]}
        self.exchange(server, client, serve.format(**address), ask.format(**address), None)

    def multicast(self, client, server):
        """Datagrams of the one's to a group that the other has joined.

        Soft-RoCE loses what it has not sent when its queue pair goes, and mckey goes at once: it is sent for as often as it takes.
        """
        receiver = self.vm[server].spawn("mckey -m 239.9.9.9 -b %s -C 10" % ADDRESS[server], timeout=PATIENCE)
        self.addCleanup(receiver.kill)
        receiver.wait_for("receiving data transfers", 60)
        for _ in range(12):
            self.vm[client].run("mckey -m 239.9.9.9 -b %s -s -C 10" % ADDRESS[client], timeout=60)
            if receiver.poll() is not None:
                break
        self.assertEqual(receiver.wait(10), 0, receiver.text())


PERFTEST = dict(
    write_bw="ib_write_bw -s 1048576 -n 5",
    write_bw_8_qps="ib_write_bw -q 8 -s 65536 -n 10",
    write_bw_both_ways="ib_write_bw -b -s 65536 -n 10",
    read_bw="ib_read_bw -o 16 -s 1048576 -n 5",
    send_bw="ib_send_bw -s 1048576 -n 5",
    send_bw_uc="ib_send_bw -c UC -s 1024 -n 20",
    send_bw_ud="ib_send_bw -c UD -s 1024 -n 20",
    write_lat="ib_write_lat -s 2 -n 20",
    read_lat="ib_read_lat -o 16 -s 2 -n 20",
    send_lat="ib_send_lat -s 2 -n 20",
    atomic_add="ib_atomic_bw -o 16 -A FETCH_AND_ADD -n 50",
    atomic_swap="ib_atomic_lat -o 16 -A CMP_AND_SWAP -n 20",
)
CM = dict(
    rping=("rping -s -a {addr} -V -C 10", "rping -c -a {addr} -V -C 10"),
    rping_ipv6=("rping -s -a {addr6} -V -C 10", "rping -c -a {addr6} -V -C 10"),
    rping_large=("rping -s -a {addr} -V -C 3 -S 65000", "rping -c -a {addr} -V -C 3 -S 65000"),
    ucmatose=("ucmatose -b {addr}", "ucmatose -s {addr}"),
    udaddy=("udaddy -b {addr}", "udaddy -s {addr}"),
    udaddy_ipv6=("udaddy -f ipv6 -b {addr6}", "udaddy -f ipv6 -s {addr6}"),
)


def both_roles(name, method, *arguments):
    for client, server in (("ornic", "rxe"), ("rxe", "ornic")):
        def test(self, client=client, server=server):
            getattr(self, method)(client, server, *arguments)
        setattr(Rxe, "test_%s_%s_client" % (name, client), test)


for test_name, line in PERFTEST.items():
    both_roles(test_name, "perftest", *line.split(" ", 1))
for size in range(31, 37):
    both_roles("padding_%d" % size, "perftest", "ib_send_lat", "-s %d -n 5" % size)
for test_name, commands in CM.items():
    both_roles(test_name, "cm", *commands)
both_roles("multicast", "multicast")

if __name__ == "__main__":
    tap.main()
