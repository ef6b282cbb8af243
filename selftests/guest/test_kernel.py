#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Verbs of the kernel: runs selftests/kmod, one test here for each of its cases, with rdma_rw by plain addresses and by
registrations (the force_mr parameter of ib_core), and with connections over IPv6."""
import re

import harness
import kprobes

CASES = """
    attributes echo_softirq_pooled echo_workqueue echo_workqueue_pooled echo_direct remote_invalidate remote_invalidate_workqueue
    largest prefix local_invalidate stale_key register_twice two_regions refused drain drain_direct srq_echo srq_limit srq_resize
    srq_resize_workqueue resize_cq resize_cq_workqueue resize_cq_reset resize_cq_destroy largest_queues mcast""".split()
MODULE = "/tmp/selftests/ornic_ktest.ko"
LAYERS = "rdma_ucm rdma_cm ib_umad ornic_ib ib_uverbs iw_cm ib_cm ib_core"
SLOT = "/sys/bus/pci/devices/0000:01:00.0"
UPDATES = "/lib/modules/$(uname -r)/updates"


class Kernel(harness.GuestTest):
    ornic_only = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.said = {}

    @classmethod
    def ib_again(cls, vm, parameters):
        """Reload what is a module of the RDMA stack: ib_core keeps the CQs of its pool for as long as the device exists."""
        vm.run("for m in %s; do [ ! -e /sys/module/$m/initstate ] || rmmod $m || exit; done; modprobe ib_core %s; "
               "modprobe -a ib_uverbs rdma_ucm; insmod %s/ornic_ib.ko" % (LAYERS, parameters, UPDATES), timeout=60)
        harness.wait_usable(vm, cls.device)

    def ask(self, place, parameters, family):
        """Return the output of the client's kernel for all cases."""
        there, here = self.ends(place)
        for vm in {there, here}:
            self.ib_again(vm, parameters)
            self.addCleanup(self.ib_again, vm, "")
            self.addCleanup(vm.run, "rmmod ornic_ktest", check=False)
        here.run("dmesg -C")
        address = self.p.address(there, family)
        if there is not here:
            there.run("insmod %s listen=%s" % (MODULE, address))
            here.run("insmod %s connect=%s" % (MODULE, address), timeout=200)
        else:
            here.run("insmod %s listen=%s connect=%s" % (MODULE, address, address), timeout=200)
        return here.run("dmesg").out

    def death(self, blow):
        """Check how connections end, with and without an SRQ, when their device goes away (ORN-QP-22, ORN-SRQ-6)."""
        for vm in self.a, self.b:
            self.addCleanup(vm.run, "rmmod ornic_ktest", check=False)
        self.b.run("insmod %s listen=%s" % (MODULE, self.p.address(self.b)))
        self.a.run("dmesg -C")
        client = self.spawn(self.a, "insmod %s connect=%s dies=1" % (MODULE, self.p.address(self.b)), 300)
        self.a.run("until_said 'ornic_ktest: # waiting'", timeout=120)
        self.a.run(blow, timeout=120)
        client.wait(300)
        said = self.a.run("dmesg").out
        self.assertIn("ornic_ktest: ok 1 - death", said, said[-1500:])
        harness.wait_usable(self.a, self.device, 60)
        return self.a.run("dmesg").out

    def test_device_dies(self):
        """Without DMA there is no heartbeat, so the device is late, until an administrator gives it up."""
        said = self.death("printf '\\002' | dd of=%s/config bs=1 seek=4 conv=notrunc && until_said 'device is late' && "
                          "devlink health recover pci/%s reporter fw" % (SLOT, SLOT.rpartition("/")[2]))
        self.assertIn("device recovered", said)

    def test_device_is_reset(self):
        """A function level reset while the driver is bound to the device."""
        self.death("echo 1 > %s/reset" % SLOT)

    def count_io(self):
        """Load the module that counts what must not wait for I/O."""
        kprobes.need(self, self.a)
        self.a.run("insmod /tmp/selftests/ornic_noio.ko")
        self.addCleanup(self.a.run, "rmmod ornic_noio")

    def counted(self, what):
        """Return a count of the module, and how many of all it counted allowed I/O."""
        return map(int, self.a.run("cd /sys/module/ornic_noio/parameters; cat %s io" % what).out.split())

    def test_no_io_in_recovery(self):
        """No allocation does I/O while a device recovers: writeback may wait for storage over this device."""
        self.count_io()
        self.a.run("echo 1 > %s/reset" % SLOT, timeout=60)
        harness.wait_usable(self.a, self.device, 60)
        steps, io = self.counted("steps")
        self.assertEqual(steps, 4)              # device, network interface, auxiliary device, RDMA device
        self.assertEqual(io, 0)

    def test_no_io_under_lock(self):
        """No allocation does I/O under the lock that the recovery of storage over this device needs."""
        self.count_io()
        self.a.run("insmod %s objects=%s" % (MODULE, self.device))
        self.addCleanup(self.a.run, "rmmod ornic_ktest", check=False)
        self.a.run("ip link set %s mtu 4000; ip link set %s mtu 1500" % (self.p.netdev, self.p.netdev))
        writers, io = self.counted("writers")
        self.assertGreaterEqual(writers, 8)     # 3 CQs, 1 SRQ, 2 queue pairs, and at least 2 CQs of the interface
        self.assertEqual(io, 0)

    def test_left_in_slow_resize(self):
        """A queue pair is reset or destroyed after the device has switched the ring of its CQ, and before the driver has."""
        self.addCleanup(self.a.run, "rmmod ornic_ktest", check=False)
        kprobes.need(self, self.a)
        self.a.run("insmod /tmp/selftests/ornic_slow.ko symbol=ornic_ib_cmd_cq_resize at_return=1 ms=1000")
        self.addCleanup(self.a.run, "rmmod ornic_slow")
        address = self.p.address(self.a)
        for case in "resize_cq_reset", "resize_cq_destroy":
            with self.subTest(case=case):
                self.a.run("dmesg -C; insmod %s listen=%s connect=%s only=%s" % (MODULE, address, address, case), timeout=60)
                self.said[case] = self.a.run("dmesg; rmmod ornic_ktest").out
                self.result(case, case)
                took = int(re.search(r"it took (\d+) ms", self.said[case]).group(1))
                self.assertGreater(took, 100, "it did not wait for the resize")

    def result(self, key, name):
        """Pass, fail or skip as the kernel said about a case."""
        point = re.search(r"ornic_ktest: (ok|not ok) \d+ - %s(?: # SKIP (.*))?$" % name, self.said[key], re.M)
        self.assertTrue(point, self.said[key][-1500:])
        if point.group(2):
            self.skipTest(point.group(2))
        self.assertEqual(point.group(1), "ok", "\n".join(re.findall("ornic_ktest: #.*", self.said[key])))

    def check(self, place, parameters, family, name):
        if parameters and harness.DEBUG:
            self.skipTest("ib_core of %s is built in and takes parameters at boot only" % harness.GUEST)
        key = place, parameters, family
        self.used_vms = key not in self.said
        if self.used_vms:
            self.said[key] = "not asked"
            self.said[key] = self.ask(*key)
        self.result(key, name)


for where in ("within", "between"):
    for mode, parameter, ip in (("plain", "", 4), ("force_mr", "force_mr=1", 4), ("ipv6", "", 6)):
        for case in CASES:
            def test(self, place=where, parameters=parameter, family=ip, name=case):
                self.check(place, parameters, family, name)
            setattr(Kernel, "test_%s_%s_%s" % (where, mode, case), test)

if __name__ == "__main__":
    harness.main()
