#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Allocation failures: each allocation fails in turn in all operations by which processes, administrators and the kernel
create, change and destroy objects.

Runs prog/verbs_faults and prog/driver_faults with the kernel's fault injection, which stock kernels do not have: for
GUEST=trixie-debug. The functions in an allocation's call chain decide whether it counts: those of uverbs for operations of a
process; for the rest those of modules, which are the drivers alone. For modules the search depth is small, because otherwise
most allocations of a probe would be those of sysfs.
"""
import unittest

import programs

VERBS = """
    open_device import_device query_gids pd comp_channel ah cq cq_large cq_ex cq_resize cq_moderate
    parent_domain srq srq_xrc srq_use xrcd xrcd_file qp_rc qp_uc qp_ud qp_raw qp_srq qp_xrc_ini qp_xrc_tgt qp_states
    qp_query mcast mr mr_large mr_empty mr_dmabuf mr_dm mr_rereg mw_1 mw_2 dm flow wq rwq_table qp_rss
    process_end""".split()
DRIVER = "bind_rdma up mtu port_counter counter consumer".split()
UPDATES = "/lib/modules/$(uname -r)/updates"
SLOT = "0000:01:00.0"
DRIVER_PATH = "/sys/bus/pci/drivers/ornic"
DEEP, SHALLOW = 32, 8           # functions of a call chain that are compared
SETTINGS = """
    count() {
        cd /sys/kernel/debug/$1 || exit
        echo 0 > verbose; echo $2 > stacktrace-depth; echo $3 > require-start; echo $4 > require-end
        echo %(checker_start)#x > reject-start; echo %(checker_end)#x > reject-end
        for f in ignore-gfp-wait ignore-gfp-highmem cache-filter; do [ ! -e $f ] || echo N > $f; done
        [ ! -e min-order ] || echo 0 > min-order
    }
    count failslab %(depth)d %(start)#x %(end)#x
    count fail_page_alloc %(depth)d %(start)#x %(end)#x
    count fail_usercopy %(depth)d 1 1"""


class Faults(programs.LocalTest):
    """A file's test case whose programs run with failing allocations."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if cls.a.run("[ -e /proc/self/fail-nth ]", check=False).rc:
            raise unittest.SkipTest("this kernel has no fault injection: GUEST=trixie-debug has")

    def faults_of(self, start, end, depth):
        """Count only allocations on behalf of functions in a range of addresses."""
        checker_start, checker_end = self.text("debug_dma_")    # excluded: it stays silent for ever after its first fault
        self.a.run(SETTINGS % {"start": start, "end": end, "depth": depth,
                               "checker_start": checker_start, "checker_end": checker_end})

    def text(self, prefix):
        """Return the address range of kernel functions with such names: the functions of one subsystem are neighbours."""
        found = self.a.run("grep -iE ' t (_etext|%s.*)$' /proc/kallsyms | grep -v cold" % prefix).out.splitlines()
        at = {line.split()[2]: int(line.split()[0], 16) for line in found}
        end = at.pop("_etext")                  # code after it runs at boot only
        at = sorted(each for each in at.values() if each < end)
        return at[0], at[-1] + 4096


class Verbs(Faults):
    def setUp(self):
        super().setUp()
        self.faults_of(*self.text("ib_uverbs_"), DEEP)


class Driver(Faults):
    def setUp(self):
        super().setUp()
        found = self.a.run("cat /proc/modules").out.splitlines()
        at = [int(line.split()[5], 16) for line in found]
        # modules that are loaded later have higher addresses, and nothing else has
        self.faults_of(min(at) & ~0xfffffff, 2 ** 64 - 1, SHALLOW)
        self.addCleanup(self.restore)

    def restore(self):
        """Give the interface of VM 0 its addresses again and wait until the RDMA port is up."""
        vm, dev = self.a, self.p.netdev
        vm.run("ip link set %s mtu 1500 up; ip addr replace %s/24 dev %s; ip -6 addr replace %s/64 dev %s nodad"
               % (dev, self.p.address(vm), dev, self.p.address(vm, 6), dev), timeout=30)
        self.wait_usable()

    def one(self, name):
        auxdev = self.a.run("ls /sys/bus/auxiliary/devices").out.strip()
        self.one_here("driver_faults %s %s %s" % (self.device, self.p.netdev, auxdev), name, timeout=300)

    def one_without_rdma(self, name):
        """Run without the RDMA driver, because its failure to bind does not make this operation fail."""
        self.a.run("rmmod ornic_ib")
        try:
            self.one(name)
        finally:
            self.a.run("insmod %s/ornic_ib.ko" % UPDATES)

    def test_driver_bind_pci(self):
        self.one_without_rdma("bind_pci")

    def test_driver_reset(self):
        self.one_without_rdma("reset")

    def test_driver_bind_fragmented(self):
        """ORN-EQ-3: memory has no four contiguous pages, so rings are in smaller pieces; driver and interface still work."""
        fault = "/sys/kernel/debug/fail_page_alloc"
        self.addCleanup(self.a.run, "echo 0 > {0}/probability; echo N > {0}/task-filter; echo 0 > {0}/min-order".format(fault))
        self.a.run("rmmod ornic_ib; echo {1} > {2}/unbind; echo 2 > {0}/min-order; echo 100 > {0}/probability; echo -1 > {0}/times; "
                   "echo Y > {0}/task-filter".format(fault, SLOT, DRIVER_PATH))
        try:
            self.a.run("echo 1 > /proc/self/make-it-fail; echo {0} > {1}/bind; cd /sys/bus/pci/devices/{0}/net; ip link set * up; "
                       "ethtool -G * rx 4096 tx 4096".format(SLOT, DRIVER_PATH))
        finally:
            self.a.run("echo 0 > %s/probability; [ -e /sys/bus/pci/devices/%s/driver ] || echo %s > %s/bind; "
                       "insmod %s/ornic_ib.ko" % (fault, SLOT, SLOT, DRIVER_PATH, UPDATES))
        self.p.netdev = self.a.run("ls /sys/bus/pci/devices/%s/net" % SLOT).out.strip()

    def test_driver_mtu_without_memory(self):
        """No memory for the queues of a new MTU: the old queues continue."""
        fault = "/sys/kernel/debug/fail_page_alloc"
        self.addCleanup(self.a.run, "echo 0 > %s/probability; echo N > %s/task-filter" % (fault, fault))
        self.a.run("echo 100 > %s/probability; echo 1 > %s/times; echo Y > %s/task-filter" % (fault, fault, fault))
        failed = self.a.run("echo 1 > /proc/self/make-it-fail; exec ip link set %s mtu 4000" % self.p.netdev, check=False)
        self.assertIn("Cannot allocate memory", failed.err)
        self.assertEqual(self.a.run("cat %s/times" % fault).out.strip(), "0")
        self.a.run("ip link show %s | grep -q 'mtu 1500' && ping -c 1 -W 5 %s" % (self.p.netdev, self.p.address(self.b)), timeout=30)


programs.local_points(Verbs, "verbs_faults", VERBS, prefix="verbs_", timeout=300)
for each in DRIVER:
    def test(self, name=each):
        self.one(name)
    setattr(Driver, "test_driver_" + each, test)

if __name__ == "__main__":
    programs.harness.main()
