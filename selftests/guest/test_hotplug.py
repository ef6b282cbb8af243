#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Devices are added to a running daemon, plugged into a running VM, used and removed, while another connection carries on.

QEMU 11.1 aborts at device_del of a vfio-user device with MSI-X. So the guest lets the function go, and the host removes the device
without QEMU's help; the slot stays taken until that QEMU ends. test_device_del is for a QEMU that does better.
"""
import contextlib
import os
import re
import time
import unittest

import badnet
import harness
from control import Client, Refused     # pylint: disable=wrong-import-order
from harness import LabError, cm_listens
from lab import Lab                     # pylint: disable=wrong-import-order
from lab.qmp import Monitor             # pylint: disable=wrong-import-order

ROUNDS = 8
SLOTS = ROUNDS + 2
WARM = 3                                # rounds after which the daemon has all memory that it keeps
GROWTH = 1 << 20                        # bytes
PORT = 18600
NET = "10.88.99"                        # of the devices that are plugged in
RESERVE = ",mem-reserve=16M"            # what the guide recommends
PATH = "/sys/bus/pci/devices/%s"
# from a megabyte on: a device whose BARs did not fit is there, too
FOUND = "for d in /sys/bus/pci/devices/*; do [ \"$(cat $d/vendor)\" != 0x4f52 ] || echo ${d##*/}; done"


def slot(k, more):
    """Return a root port; eight share the slot of one on the root bus."""
    return ["-device", "pcie-root-port,id=hp%d,chassis=%d,x-speed=5,addr=0x%x.%d,multifunction=on%s"
            % (k, 100 + k, 0x10 + k // 8, k % 8, more)]


# In a VM of 3 GiB a port needs no reserve.
harness.OWN_LAB = {"ornicd_args": badnet.ORNICD_ARGS, "hosts": "one",
                   "qemu_args": sum([slot(k, RESERVE if k % 2 else "") for k in range(SLOTS)], [])}


class Plugged:
    """A device of the daemon in a slot of a VM, from device.add to device.del."""

    def __init__(self, lab, control, vm, number):
        self.lab, self.control, self.vm, self.number = lab, control, vm, number
        self.before = set(vm.run(FOUND).out.split())
        self.path = lab.state.path("plug.sock")
        self.mac = "02:00:00:99:00:%02x" % number
        control.call("device.add", spec="path=%s,name=plug,mac=%s" % (self.path, self.mac))
        with Monitor(vm) as monitor:
            monitor("device_add", driver="vfio-user-pci", bus="hp%d" % number, id="plug%d" % number,
                    socket={"type": "unix", "path": self.path})
        end = time.monotonic() + 60 * harness.SLOW
        while not (new := set(vm.run(FOUND).out.split()) - self.before):
            assert time.monotonic() < end, "the guest does not see the device"
        self.address, = new

    def wait_driver(self):
        """Wait until the driver has the device; return the names of the RDMA device and its interface."""
        folder = PATH % self.address
        self.vm.run("until ls %s/infiniband %s/net; do sleep 0.05; done" % (folder, folder), timeout=60)
        rdma, netdev = (self.vm.run("ls %s/%s" % (folder, kind)).out.strip() for kind in ("infiniband", "net"))
        return rdma, netdev

    def let_go(self):
        """Make the guest remove the function, as an orderly unplug does."""
        self.vm.run("echo 1 > %s/remove" % (PATH % self.address), timeout=60)

    def delete(self, force=False):
        self.control.call("device.del", name="plug", force=force)


class HotPlug(harness.GuestTest):
    ornic_only = True
    slots = iter(range(SLOTS))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.control = Client(cls.p.lab.state.path("control0"))
        cls.addClassCleanup(cls.control.close)
        cls.a.run("ip addr replace %s.1/24 dev %s" % (NET, cls.p.netdev))

    def plug(self):
        return Plugged(self.p.lab, self.control, self.b, next(self.slots))

    def gid(self, vm, device, host):
        folder = "/sys/class/infiniband/%s/ports/1/gids" % device
        pattern = "ffff:0a58:%02x%02x" % (int(NET.rsplit(".", 1)[1]), host)
        found = vm.run("until grep -l %s %s/*; do sleep 0.05; done" % (pattern, folder), timeout=30).out
        return int(found.split()[0].rsplit("/", 1)[1])

    def use(self, plugged):
        """Give the new device an address, and let VM a reach it by Ethernet and RDMA. Return the RDMA device."""
        rdma, netdev = plugged.wait_driver()
        # Linux answers for the address of one interface by another one, too, if both are on the segment.
        self.b.run("echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore")
        self.b.run("ip link set %s up && ip addr replace %s.2/24 dev %s" % (netdev, NET, netdev))
        harness.wait_usable(self.b, rdma)
        self.a.run("ip neigh flush to %s.2; ping -q -c 3 -i 0.1 -W 5 %s.2" % (NET, NET), timeout=30)
        server = self.spawn(self.b, "rping -s -a %s.2 -V -C 10" % NET, 60)
        self.b.run("until rdma res show cm_id | grep LISTEN | grep -q %s.2; do sleep 0.05; done" % NET, timeout=30)
        self.a.run("rping -c -a %s.2 -V -C 10" % NET, timeout=60)
        self.assertEqual(server.wait(60), 0)
        client = self.pingpong(rdma, 50)
        self.assertEqual(client.wait(60), 0, client.text())
        return rdma

    def pingpong(self, rdma, count):
        """Start ibv_rc_pingpong between VM a and the new device; return the client, in a."""
        self.spawn(self.b, "ibv_rc_pingpong -d %s -g %d -n %d -c" % (rdma, self.gid(self.b, rdma, 2), count), 120)
        self.b.wait_listen(18515, 30)
        return self.spawn(self.a, "ibv_rc_pingpong -d %s -g %d -n %d -c %s.2"
                          % (self.device, self.gid(self.a, self.device, 1), count, NET), 120)

    def memory(self):
        """Return the bytes of the daemon's own memory, without that of guests."""
        with open("/proc/%d/status" % self.p.lab.daemon_pids()[0], encoding="ascii") as f:
            return int(re.search(r"RssAnon:\s*(\d+) kB", f.read()).group(1)) << 10

    def carried(self):
        """Return the packets that VM a's own device has sent."""
        return self.control.call("counters", device="dev0.0")["rdma_tx_packets"]


class Rounds(HotPlug):
    def test_rounds(self):
        """Twenty devices come and go. A connection between the VMs' own devices neither ends nor retransmits; memory stays."""
        server = self.spawn(self.b, "rping -s -a %s -p 7175 -V" % self.p.address(self.b), None)
        cm_listens(self.b)
        client = self.spawn(self.a, "rping -c -a %s -p 7175 -V -C 100000000" % self.p.address(self.b), None)
        sizes = []
        for n in range(ROUNDS):
            before = self.carried()
            plugged = self.plug()
            self.use(plugged)
            with self.assertRaises(Refused) as caught:
                plugged.delete()
            self.assertEqual(caught.exception.code, 3)
            self.assertIn("uses it", str(caught.exception))
            plugged.let_go()
            plugged.delete(force=True)
            self.assertFalse(os.path.exists(plugged.path))
            self.assertEqual([d["name"] for d in self.control.call("device.list")], ["dev0.0", "dev1.0"])
            self.assertGreater(self.carried() - before, 100, "round %d" % n)
            sizes.append(self.memory())
        print("# anonymous memory of ornicd, KiB: %s" % " ".join(str(size >> 10) for size in sizes))
        self.assertLess(max(sizes) - sizes[WARM], GROWTH)
        for name in ("dev0.0", "dev1.0"):
            qps = self.control.call("qp.list", device=name)["qps"]
            self.assertEqual(sum(qp.get("retransmits", 0) for qp in qps), 0, qps)
        self.assertEqual((client.status, server.status), (None, None), client.text() + server.text())
        client.kill()
        self.assertTrue(self.b.alive())


class Surprise(HotPlug):
    def test_forced(self):
        """A device is removed under its guest: the peer gets an error, QEMU and the guest live, and the guest can let it go."""
        plugged = self.plug()
        rdma = self.use(plugged)
        writes = "ib_write_bw -F -D 100 -p %d -d %s -x %d"
        self.spawn(self.b, writes % (PORT, rdma, self.gid(self.b, rdma, 2)), 120)
        self.b.wait_listen(PORT, 30)
        running = self.spawn(self.a, writes % (PORT, self.device, self.gid(self.a, self.device, 1)) + " %s.2" % NET, 120)
        before = self.carried()
        while self.carried() < before + 1000:
            time.sleep(0.05)
        plugged.delete(force=True)
        self.assertNotIn(running.wait(60), (0, 124))
        self.assertIn("Failed status 12", running.text())       # IBV_WC_RETRY_EXC_ERR
        self.b.run("until dmesg | grep -q 'device is late'; do sleep 0.1; done", timeout=60)
        began = time.monotonic()
        self.b.run("pkill -9 -x ib_write_bw", check=False)
        plugged.let_go()
        print("# the guest let go of the device after %.1f s" % (time.monotonic() - began))
        self.assertNotIn(plugged.address, self.b.run(FOUND).out)
        self.b.run("ping -q -c 1 -W 5 %s" % self.p.address(self.a))


class Successor(HotPlug):
    """A new QEMU attaches to the device of its predecessor. Its guest finds it as new."""

    def check(self, end):
        self.used_vms = False
        self.a.run("ping -q -c 1 -W 5 %s" % self.p.address(self.b))
        self.spawn(self.b, "rping -s -a %s -V" % self.p.address(self.b), 60)
        cm_listens(self.b)
        client = self.spawn(self.a, "rping -c -a %s -V -C 100000000" % self.p.address(self.b), 20)
        before = self.carried()
        while self.carried() < before + 100:
            time.sleep(0.05)
        with contextlib.suppress(LabError):     # it does not answer as it ends
            end()
        while self.b.alive():
            time.sleep(0.02)
        self.assertNotEqual(client.wait(60), 0)
        self.p.lab.start(self.b.number)
        self.p.prepare()
        device, = [d for d in self.control.call("device.list") if d["name"] == "dev1.0"]
        self.assertEqual((device["attached"], device["state"], device["link"], device["mac"]),
                         (True, "ready", "up", device["permanent_mac"]))
        self.exchange("between", "rping -s -a %s -V -C 10" % self.p.address(self.b), "rping -c -a {addr} -V -C 10", cm_listens)

    def test_killed(self):
        self.check(self.b.kill)

    def test_quit(self):
        def end():
            with Monitor(self.b) as monitor:
                monitor("quit")
        self.check(end)

    def test_guest_died(self):
        self.check(lambda: self.b.run("echo c > /proc/sysrq-trigger", check=False, timeout=None))


class SmallVM(unittest.TestCase):
    """Root ports of a VM with less than 2816 MiB: firmware gives them 2 MiB of each kind unless they ask for more."""

    MORE = ("", RESERVE, ",pref64-reserve=16M", ",mem-reserve=8M")

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab.up(1, name="plug-%d" % os.getpid(), mem="1G", guest=harness.GUEST, devices="1", ornicd_args=badnet.ORNICD_ARGS,
                         ornicd=os.path.join(harness.BUILT, "ornicd"), modules=harness.PAYLOAD, provider=harness.PAYLOAD,
                         qemu_args=sum([slot(k, more) for k, more in enumerate(cls.MORE)], []))
        cls.addClassCleanup(cls.lab.down)
        cls.vm, = cls.lab.vms
        cls.vm.patience = harness.SLOW
        cls.control = Client(cls.lab.state.path("control0"))
        cls.addClassCleanup(cls.control.close)

    def fits(self, number):
        plugged = Plugged(self.lab, self.control, self.vm, number)
        start = int(self.vm.run("head -n 1 %s/resource" % (PATH % plugged.address)).out.split()[0], 16)
        if start:
            plugged.wait_driver()
        plugged.let_go()
        plugged.delete(force=True)
        return bool(start)

    def test_reserve(self):
        self.assertEqual([self.fits(k) for k in range(len(self.MORE))], [False, True, True, False])
        self.assertFalse(harness.complaints(self.vm))

    def test_unplug(self):
        """device_del, with a QEMU that can."""
        with Monitor(self.vm) as monitor:
            version = monitor("query-version")["qemu"]
            monitor("device_del", id="ornic0")
        end = time.monotonic() + 60
        try:
            while self.vm.run(FOUND).out and time.monotonic() < end:
                time.sleep(0.1)
            self.control.call("device.del", name="dev0.0")
        except LabError:
            with open(self.vm.file("qemu.log"), encoding="utf-8") as f:
                self.assertIn("memory_region_del_subregion: Assertion", f.read())
            self.skipTest("QEMU %(major)d.%(minor)d.%(micro)d aborts at device_del of a vfio-user device with MSI-X" % version)


if __name__ == "__main__":
    harness.main()
