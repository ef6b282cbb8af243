#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Loading and unloading of the drivers: unloading, reloading, removal of the device, with and without users of it."""
import harness

UPDATES = "/lib/modules/$(uname -r)/updates"
UNLOAD = "rmmod ornic_ib && rmmod ornic"
LOAD = "insmod %s/ornic.ko && insmod %s/ornic_ib.ko" % (UPDATES, UPDATES)
SLOT = "/sys/bus/pci/devices/0000:01:00.0"


class Module(harness.GuestTest):
    ornic_only = True

    def works(self):
        self.addresses()
        server, client = ["ibv_rc_pingpong -d %s -g %d -n 50 -c" % (self.device, self.p.gid_index(vm))
                          for vm in (self.b, self.a)]
        self.exchange("between", server, client + " {addr}", 18515)
        self.a.run("ping -c 1 -W 5 " + self.p.address(self.b))

    def test_order(self):
        """ornic.ko is in use while ornic_ib.ko is loaded."""
        self.assertNotEqual(self.a.run("rmmod ornic", check=False).rc, 0)
        self.a.run("rdma link show %s/1" % self.device)

    def test_unload_ib_alone(self):
        """The Ethernet interface continues to work without RDMA."""
        self.a.run("rmmod ornic_ib")
        self.assertNotIn(self.device, self.a.run("rdma link").out)
        self.a.run("ping -c 2 -i 0.1 -W 5 " + self.p.address(self.b))
        self.a.run("insmod %s/ornic_ib.ko" % UPDATES)
        self.works()

    def test_reload_five_times(self):
        for _ in range(5):
            self.a.run("%s && %s" % (UNLOAD, LOAD), timeout=60)
        self.works()

    def test_unload_while_up(self):
        """The interface is up and answers, without other traffic."""
        self.a.run("ip link show %s | grep -q 'state UP'" % self.p.netdev)
        self.a.run("%s && %s" % (UNLOAD, LOAD), timeout=60)
        self.works()

    def test_unload_in_use(self):
        """While a process has queue pairs, rmmod fails or takes the device away from it; nothing hangs."""
        process = self.spawn(self.a, "exec ib_write_bw -d %s -F" % self.device, 120)
        self.a.wait_listen(18515)
        self.a.run("rmmod ornic_ib", timeout=30, check=False)
        process.kill()
        self.a.run("lsmod | grep -q ^ornic_ib || insmod %s/ornic_ib.ko" % UPDATES, timeout=30)
        self.works()

    def test_remove_and_rescan(self):
        self.a.run("echo 1 > %s/remove" % SLOT, timeout=60)
        self.assertNotIn(self.device, self.a.run("rdma link").out)
        self.a.run("echo 1 > /sys/bus/pci/rescan", timeout=60)
        self.works()

    def test_remove_in_use(self):
        """A process with queue pairs loses its device and ends; the device comes back."""
        process = self.spawn(self.a, "exec ib_write_bw -d %s -F" % self.device, 120)
        self.a.wait_listen(18515)
        self.a.run("echo 1 > %s/remove" % SLOT, timeout=60)
        process.kill()
        self.a.run("echo 1 > /sys/bus/pci/rescan", timeout=60)
        self.works()

    def test_unbind_and_bind(self):
        driver = "/sys/bus/pci/drivers/ornic"
        self.a.run("echo 0000:01:00.0 > %s/unbind && echo 0000:01:00.0 > %s/bind" % (driver, driver), timeout=60)
        self.works()

    def test_function_level_reset(self):
        """Reset of an unbound device; the driver finds a new device."""
        driver = "/sys/bus/pci/drivers/ornic"
        self.a.run("echo 0000:01:00.0 > %s/unbind; echo 1 > %s/reset; echo 0000:01:00.0 > %s/bind" % (driver, SLOT, driver),
                   timeout=60)
        self.works()


if __name__ == "__main__":
    harness.main()
