#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""devlink as an administrator uses it: port, reload, parameters, health reporters; and resets by PCI, with traffic before and after.

A proxy (selftests/proxy) lets the device die, fail to start and lose interrupts.
"""
import json
import re
import time

import harness
import test_bad_device
from proxied import INTERFACE, LOAD, UP, WRITE, Proxied, c, tap

SLOT = "0000:01:00.0"
HANDLE = "pci/" + SLOT
RELOAD = "devlink dev reload " + HANDLE
FLR = "echo 1 > /sys/bus/pci/devices/%s/reset" % SLOT
PEER = "10.88.0.2"
ETH_VECTOR = 1


class DevlinkTest(test_bad_device.BadDevice):
    """Two VMs; for each test the driver of VM 0 is reloaded and gets its address."""

    vms = 2

    def setUp(self):
        super().setUp()
        self.load()
        self.vm.run(UP % 1, timeout=60)
        self.vm.run("dmesg -C")

    def works(self, load=False):
        super().works()                         # setUp() has loaded the driver

    def interface(self):
        return self.vm.run("basename %s" % INTERFACE).out.strip()

    def devlink(self, command, **options):
        return self.vm.run("devlink -j " + command, timeout=120, **options)

    def reporter(self, name):
        """Return devlink's state of a reporter."""
        reporters = json.loads(self.devlink("health show %s reporter %s" % (HANDLE, name)).out)["health"][HANDLE]
        return reporters[0]

    def until(self, ask, reached, seconds=60):
        """Repeat a query until the answer is as expected; return the answer."""
        end = time.monotonic() + seconds * harness.SLOW
        while not reached(said := ask()):
            self.assertLess(time.monotonic(), end, said)
            time.sleep(0.2)
        return said

    def wait_reporter(self, name, **wanted):
        """Wait until devlink shows this state of a reporter; the numbers are errors and recoveries since the driver was loaded."""
        self.until(lambda: self.reporter(name), lambda said: all(said[key] == value for key, value in wanted.items()))

    def diagnose(self, name):
        """Return the state by name, without nesting."""
        text = self.vm.run("devlink health diagnose %s reporter %s" % (HANDLE, name), timeout=60).out
        return dict(re.findall(r"(\w+): ([\w ]+?)(?=\s*$|\s+\w+:|\s\s)", text, re.M))

    def refused(self, command, text):
        """Check that the command fails and that the driver gives the reason."""
        result = self.vm.run(command, check=False, timeout=120)
        self.assertNotEqual(result.rc, 0)
        self.assertIn("ornic: ", result.out + result.err)
        self.assertIn(text, result.out + result.err)

    def pings(self):
        self.vm.run(UP % 1, timeout=60)
        self.vm.run("ping -n -c 2 -i 0.1 -W 10 " + PEER, timeout=60)

    def all_works(self):
        """Check Ethernet to the other VM, and RDMA."""
        self.pings()
        self.works()

    def die_for_good(self):
        """Let the device die while automatic recovery is off."""
        self.vm.run("devlink health set %s reporter fw auto_recover false" % HANDLE)
        self.die()
        self.wait_said("no automatic recovery")


class Port(DevlinkTest):
    def test_port(self):
        """The physical port belongs to the interface, and names it for udev."""
        ports = json.loads(self.devlink("port show").out)["port"]
        self.assertEqual(list(ports), [HANDLE + "/1"])
        port = ports[HANDLE + "/1"]
        self.assertEqual((port["type"], port["flavour"], port["netdev"]), ("eth", "physical", self.interface()))
        self.assertEqual(self.vm.run("cat /sys/class/net/%s/phys_port_name" % self.interface()).out.strip(), "p1")


class Reload(DevlinkTest):
    def index(self):
        return int(self.vm.run("cat /sys/class/net/%s/ifindex" % self.interface()).out)

    def fails(self):
        """Return a hook that falsifies the device's answers to IDENTIFY."""
        self.proxy.lies.on_completion = self.command(c.ORNIC_OP_IDENTIFY, status=c.ORNIC_ST_INTERNAL)

    def test_reload(self):
        """Interface and RDMA device are new ones, the device was reset, and everything works."""
        before = self.index()
        for _ in range(3):
            self.vm.run(RELOAD, timeout=120)
        self.assertNotEqual(self.index(), before)
        self.all_works()
        self.assertEqual(set(self.reasons()), {c.ORNIC_REASON_USER})
        self.assertEqual(list(json.loads(self.devlink("port show").out)["port"]), [HANDLE + "/1"])
        self.assertEqual(self.reporter("fw")["state"], "healthy")

    def test_in_use(self):
        """Processes that have the device open lose it."""
        waiting = self.spawn("exec " + test_bad_device.ALONE)
        self.vm.wait_listen(18515)
        self.vm.run(RELOAD, timeout=120)
        waiting.kill()
        self.all_works()

    def down(self):
        """Make a reload fail. The device is down, without interface, and devlink shows it."""
        self.fails()
        self.refused(RELOAD, "the device does not start")
        self.vm.run("! ls -d /sys/bus/pci/drivers/ornic/*/net && ! rdma link show ornic0/1")
        self.assertEqual(json.loads(self.devlink("port show").out)["port"], {})
        self.assertEqual(self.reporter("fw")["state"], "error")
        self.assertEqual(self.diagnose("fw")["state"], "down")
        self.refused("devlink health recover %s reporter fw" % HANDLE, "a reload has failed")

    def test_again_after_failure(self):
        self.down()
        self.refused(RELOAD, "the device does not start")
        self.proxy.lies.on_completion = None
        self.vm.run(RELOAD, timeout=120)
        self.all_works()
        self.assertEqual(self.reporter("fw")["state"], "healthy")
        self.die()                              # and is recovered as before
        self.wait_said("device recovered")
        self.all_works()

    def test_unbind_after_failure(self):
        """A PCI reset does not change this state; another driver, or the same, can bind to the device."""
        self.down()
        self.vm.run(FLR, timeout=60)
        self.assertEqual(self.diagnose("fw")["state"], "down")
        self.proxy.lies.on_completion = None
        driver = "/sys/bus/pci/drivers/ornic"
        self.vm.run("echo %s > %s/unbind && echo %s > %s/bind" % (SLOT, driver, SLOT, driver), timeout=60)
        self.all_works()

    def test_other_namespace(self):
        """A reload into another namespace is rejected without effect."""
        before = self.index()
        self.addCleanup(self.vm.run, "ip netns del devlink-test")
        self.vm.run("ip netns add devlink-test")
        self.refused("devlink dev reload %s netns devlink-test" % HANDLE, "move the interface")
        self.assertEqual(self.index(), before)
        self.all_works()


class Parameter(DevlinkTest):
    def set_rdma(self, value):
        self.vm.run("devlink dev param set %s name enable_rdma value %s cmode driverinit" % (HANDLE, value))

    def rdma(self):
        return "ornic0" in self.vm.run("rdma link").out

    def pings(self):
        i = self.interface()
        self.vm.run("ip link set %s up && ip addr replace 10.88.0.1/24 dev %s && ping -n -c 2 -i 0.1 -W 10 %s" % (i, i, PEER),
                    timeout=60)

    def test_enable_rdma(self):
        """The parameter takes effect with the reload and persists through recovery and reset."""
        self.set_rdma("false")
        self.assertTrue(self.rdma())
        self.vm.run(RELOAD, timeout=120)
        self.assertFalse(self.rdma())
        self.pings()
        self.die()
        self.wait_said("device recovered")
        self.vm.run(FLR, timeout=60)
        self.pings()
        self.assertFalse(self.rdma())
        self.set_rdma("true")
        self.assertFalse(self.rdma())
        self.vm.run(RELOAD, timeout=120)
        self.all_works()


class Health(DevlinkTest):
    def test_recovered(self):
        """The driver counts, dumps and recovers a failure; the dump stays until it is cleared."""
        self.assertEqual((self.reporter("fw")["state"], self.reporter("fw")["error"]), ("healthy", 0))
        self.die()
        self.recovers(c.ORNIC_REASON_FATAL)
        self.wait_reporter("fw", state="healthy", error=1, recover=1)
        dump = self.vm.run("devlink health dump show %s reporter fw" % HANDLE, timeout=60).out
        self.assertRegex(dump, r"state: dead")
        self.assertRegex(dump, r"reset_reason: device or PCI link failed")
        self.assertRegex(dump, r"registers:")
        self.vm.run("devlink health dump clear %s reporter fw" % HANDLE)

    def test_many(self):
        """Errors in close succession: as many recoveries as without devlink; an administrator may request more."""
        for _ in range(harness.QUICK_RESETS):
            self.vm.run("dmesg -C")
            self.die()
            self.wait_said("device recovered")
        self.die()
        self.wait_said("no recovery: reload the driver")
        self.wait_reporter("fw", state="error", error=harness.QUICK_RESETS + 1, recover=harness.QUICK_RESETS)
        self.vm.run("devlink health recover %s reporter fw" % HANDLE, timeout=60)
        self.all_works()
        self.wait_reporter("fw", state="healthy", recover=harness.QUICK_RESETS + 1)
        self.vm.run("dmesg -C")
        self.die()
        self.wait_said("device recovered")

    def carrier(self):
        return self.vm.run("cat /sys/class/net/%s/carrier" % self.interface()).out.strip()

    def test_link(self):
        """The link is down at once: the users of the RDMA device may take long, and the kernel would report the send queue as stuck."""
        self.need_programs()
        if self.vm.run("insmod /tmp/selftests/ornic_slow.ko symbol=ornic_auxdev_del ms=4000", check=False).rc:
            self.skipTest("the kernel of %s has no kprobes" % harness.GUEST)
        self.addCleanup(self.vm.run, "rmmod ornic_slow", check=False)
        self.vm.run(UP % 1, timeout=60)
        self.die()
        self.vm.run("until contains 1 /sys/module/ornic_slow/parameters/calls; do sleep 0.1; done; sleep 1", timeout=60)
        self.assertEqual(self.carrier(), "0")
        self.wait_said("device recovered")
        self.vm.run("rmmod ornic_slow")
        self.all_works()

    def manual(self):
        """Let the device die for good, and check that the reporter and the link show it."""
        self.die_for_good()
        self.wait_reporter("fw", state="error", error=1, recover=0)
        self.assertEqual(self.diagnose("fw")["state"], "dead")
        self.until(self.carrier, lambda said: said == "0")
        self.assertEqual(self.reasons(), [])

    def test_manual(self):
        """Without auto_recover the device stays dead, with the link down, until an administrator recovers it."""
        self.manual()
        self.vm.run("devlink health recover %s reporter fw" % HANDLE, timeout=60)
        self.all_works()
        self.wait_reporter("fw", state="healthy", error=1, recover=1)

    def revived(self, command):
        """Check recovery by other means: the reporter is healthy, and the next failure is recovered."""
        self.manual()
        self.vm.run(command, timeout=120)
        self.all_works()
        self.wait_reporter("fw", state="healthy")
        self.vm.run("devlink health set %s reporter fw auto_recover true; dmesg -C" % HANDLE)
        self.die()
        self.wait_said("device recovered")
        self.all_works()

    def test_manual_reload(self):
        self.revived(RELOAD)

    def test_manual_reset(self):
        self.revived(FLR)

    def test_unload_dead(self):
        """setUp() of the next test loads the driver again."""
        self.manual()
        self.vm.run(test_bad_device.UNLOAD, timeout=60)
        self.vm.run(LOAD, timeout=60)
        self.all_works()

    def test_unload_while_dying(self):
        """The driver is unloaded while it reports a failure."""
        for _ in range(5):
            self.die()
            self.vm.run(test_bad_device.UNLOAD, timeout=60)
            self.vm.run(LOAD, timeout=60)
        self.all_works()

    def test_reload_while_dying(self):
        for _ in range(5):
            self.die()
            self.vm.run(RELOAD, timeout=120)
        self.all_works()
        self.wait_reporter("fw", state="healthy")

    def test_diagnose(self):
        first = self.diagnose("fw")
        self.assertEqual((first["state"], first["reset_reason"], first["open"]), ("up", "none", "true"))
        self.until(lambda: int(self.diagnose("fw")["heartbeat"]), lambda beat: beat > int(first["heartbeat"]))
        sent = self.diagnose("tx")
        self.assertEqual((sent["running"], sent["head"], sent["stopped"]), ("true", sent["published"], "false"))
        self.pings()
        self.assertGreater(int(self.diagnose("tx")["tail"]), int(sent["tail"]))
        self.vm.run("ip link set %s down" % self.interface())
        self.assertEqual(self.diagnose("tx"), {"running": "false"})


class Transmit(DevlinkTest):
    """The send queue stalls because its interrupts are lost."""

    wanted = "NETDEV WATCHDOG"

    def stuck(self):
        self.proxy.lies.mute = {ETH_VECTOR}
        self.addCleanup(self.proxy.lies.mute.clear)
        self.spawn("exec ping -q -f -s 1400 %s > /dev/null" % PEER)
        self.wait_said("send queue stuck")

    def test_recovered(self):
        self.stuck()
        self.proxy.lies.mute.clear()
        self.until(lambda: self.reporter("tx")["recover"], bool)
        self.vm.run("until ping -n -c 1 -W 2 %s; do :; done" % PEER, timeout=60)
        self.wait_reporter("tx", state="healthy")
        self.assertEqual(self.reporter("fw")["error"], 0)

    def test_manual(self):
        self.vm.run("devlink health set %s reporter tx auto_recover false" % HANDLE)
        self.stuck()
        self.wait_reporter("tx", state="error")
        sent = self.diagnose("tx")
        self.assertNotEqual(sent["head"], sent["tail"])
        self.assertEqual((sent["stopped"], self.reporter("tx")["recover"]), ("true", 0))
        self.proxy.lies.mute.clear()
        self.vm.run("devlink health recover %s reporter tx" % HANDLE, timeout=60)
        self.vm.run("until ping -n -c 1 -W 2 %s; do :; done" % PEER, timeout=60)
        self.assertEqual(self.reporter("tx")["state"], "healthy")


class Resets(DevlinkTest):
    """Resets by the PCI core while the driver is bound and the interface busy."""

    def busy(self):
        self.spawn("while :; do ping -q -f -c 1000 -s 1000 %s; done > /dev/null 2>&1" % PEER)
        self.all_works()

    def aer(self, parameters=""):
        self.vm.push("%s/ornic_aer.ko" % harness.PROGRAMS, "/tmp/")
        self.vm.run("insmod /tmp/ornic_aer.ko %s && rmmod ornic_aer" % parameters, timeout=120)

    def kept(self, act):
        """Check that the interface keeps its index and its address, and that everything works."""
        i = self.interface()
        before = self.vm.run("cat /sys/class/net/%s/ifindex" % i).out
        self.busy()
        act()
        self.assertEqual(self.vm.run("cat /sys/class/net/%s/ifindex; ip addr show dev %s | grep -q 10.88.0.1/24" % (i, i)).out, before)
        self.all_works()
        self.assertEqual(self.reporter("fw")["state"], "healthy")

    def kept_after_failure(self, act):
        """Check that the driver tries again to restore the device."""
        self.proxy.lies.on_completion, failed = self.once(c.ORNIC_OP_IDENTIFY, c.ORNIC_ST_INTERNAL)
        self.kept(act)
        self.assertTrue(failed)


class Reset(Resets):
    def test_function(self):
        self.kept(lambda: self.vm.run(FLR, timeout=60))
        self.assertEqual(set(self.reasons()), {c.ORNIC_REASON_USER})

    def test_slot(self):
        """A PCIe error: the slot is reset, and the function loses its configuration."""
        self.kept(self.aer)

    def test_slot_after_function(self):
        """PCI cores of older kernels restore a configuration a second time only if it was saved again."""
        self.vm.run(FLR, timeout=60)
        self.kept(self.aer)

    def test_slot_twice(self):
        self.aer()
        self.kept(self.aer)

    def test_slot_fails_once(self):
        self.kept_after_failure(self.aer)

    def test_slot_while_dead(self):
        """A dead device without automatic recovery."""
        self.die_for_good()
        self.aer()
        self.all_works()
        self.assertEqual(self.reporter("fw")["state"], "healthy")

    def test_slot_while_starting(self):
        """The error is reported while a recovery waits for the device to become ready."""
        self.proxy.lies.registers[c.ORNIC_REG_CAP] = test_bad_device.timeouts(ready=250)
        self.proxy.lies.registers[c.ORNIC_REG_STATUS] = lambda value: value & ~c.ORNIC_STS_READY
        self.addCleanup(self.proxy.lies.registers.clear)
        self.since = len(self.proxy.accesses)
        self.die()
        self.proxy.wait(lambda: any(value & c.ORNIC_CTL_ENABLE for value in self.seen(WRITE, c.ORNIC_REG_CONTROL)),
                        "enable the device")
        self.vm.run("dmesg -C")
        self.vm.push("%s/ornic_aer.ko" % harness.PROGRAMS, "/tmp/")
        recovery = self.spawn("insmod /tmp/ornic_aer.ko && rmmod ornic_aer")
        self.wait_said("device is dead")
        self.proxy.lies.registers.clear()
        self.assertEqual(recovery.wait(120), 0)
        self.all_works()
        self.assertEqual(self.reporter("fw")["state"], "healthy")

    def test_permanent(self):
        """After a permanent failure only a new function starts the device again."""
        self.aer("permanent=1")
        self.refused(RELOAD, "is being reset")
        self.vm.run("echo 1 > /sys/bus/pci/devices/%s/remove" % SLOT, timeout=60)
        self.proxy.rules.reset()                # the driver finds another function
        self.vm.run("echo 1 > /sys/bus/pci/rescan", timeout=60)
        self.all_works()


class Sleep(Resets):
    """Suspend and resume of all drivers of the VM."""

    def setUp(self):
        super().setUp()
        harness.need_suspend(self, self.vm)

    def sleep(self):
        harness.suspend(self.vm)

    def test_sleep(self):
        self.kept(self.sleep)
        self.assertEqual(set(self.reasons()), {c.ORNIC_REASON_SUSPEND})

    def test_twice(self):
        self.sleep()
        self.kept(self.sleep)

    def test_resume_fails_once(self):
        self.kept_after_failure(self.sleep)

    def test_dead(self):
        """A device that is dead when the machine suspends works after it resumes."""
        self.die_for_good()
        self.sleep()
        self.all_works()


if __name__ == "__main__":
    tap.main()
