#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A device without a heartbeat is late, not dead (ORN-CTL-31, ORN-CTL-37). A proxy hides the heartbeat from the driver."""
import re
import time

import harness
from proxied import CONFIG, INTERFACE, READ, c, tap
from test_bad_device import A_PD, BadDevice, timeouts
from test_devlink import ETH_VECTOR, HANDLE, PEER, RELOAD, SLOT, DevlinkTest

LATE, BACK = "device is late", "device is no longer late"
RECOVER = "devlink health recover %s reporter fw" % HANDLE
UNBIND = "echo %s > /sys/bus/pci/drivers/ornic/unbind" % SLOT
LIMIT = 3000                            # ms, of a command


class LateTest(DevlinkTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.beats, True)

    def load(self, **lies):
        super().load(registers={c.ORNIC_REG_CAP: timeouts(admin=LIMIT // 100)}, **lies)

    def beats(self, shown):
        self.proxy.lies.heartbeat = shown

    def late(self):
        """Let the device fall silent. Return the accesses so far."""
        self.beats(False)
        self.wait_said(LATE)
        return len(self.proxy.accesses)

    def back(self):
        self.beats(True)
        self.wait_said(BACK)

    def waiting(self):
        """Start a program whose command the device does not complete; the proxy holds the completion."""
        program = self.python(A_PD)
        self.proxy.lies.on_completion = lambda command, completion: command.opcode != c.ORNIC_OP_PD_CREATE
        program.write(b"\n")
        self.proxy.wait(lambda: self.proxy.held, "send the command")
        self.proxy.lies.on_completion = None
        return program


class Waits(LateTest):
    def test_command(self):
        """A command in flight waits as long as the device is late, longer than its time limits (ORN-ADM-29)."""
        program = self.waiting()
        since = self.late()
        self.wait_reporter("fw", state="error", error=0)
        self.assertEqual(self.diagnose("fw")["state"], "late")
        time.sleep(5 * LIMIT / 1000)
        self.assertEqual(self.vm.run("cat /sys/class/net/%s/carrier" % INTERFACE).out.strip(), "1")
        asked = [access for access in self.proxy.accesses[since:] if access[0] in (CONFIG, READ)]
        self.proxy.release()
        program.wait_for("done", 60)
        self.back()
        self.assertEqual(asked, [])
        self.wait_reporter("fw", state="healthy", error=0)
        self.assertEqual(self.diagnose("fw")["state"], "up")
        said = self.vm.dmesg()
        self.assertEqual((said.count(LATE), said.count(BACK)), (1, 1), said)
        self.assertEqual(self.reasons(), [])
        self.all_works()

    def test_send_queue(self):
        """A send queue that stands still is not reported, and continues."""
        self.proxy.lies.mute = {ETH_VECTOR}
        self.addCleanup(self.proxy.lies.mute.clear)
        self.beats(False)
        flood = self.spawn("exec ping -q -f -s 1400 %s > /dev/null" % PEER)
        self.wait_said(LATE)
        time.sleep(7 * harness.SLOW)            # the watchdog of the network stack waits for 5 s
        self.assertEqual(self.diagnose("tx")["stopped"], "true")
        self.proxy.lies.mute.clear()
        self.proxy.interrupt(ETH_VECTOR)
        self.back()
        flood.kill()
        self.all_works()
        self.assertNotIn("NETDEV WATCHDOG", self.vm.dmesg())
        self.assertEqual((self.reasons(), self.reporter("tx")["error"]), ([], 0))

    def test_failed_meanwhile(self):
        """A device that was late and comes back FATAL is recovered, although the reporter is in state "error"."""
        self.late()
        self.wait_reporter("fw", state="error")
        self.die()
        self.beats(True)
        self.wait_said("device recovered")
        self.assertEqual(set(self.reasons()), {c.ORNIC_REASON_FATAL})
        self.wait_reporter("fw", state="healthy", error=1, recover=1)
        self.all_works()

    def test_threshold(self):
        """The parameter late_beats takes effect at a reload."""
        for beats in (2, 6):
            self.vm.run("devlink dev param set %s name late_beats value %d cmode driverinit && devlink dev reload %s"
                        % (HANDLE, beats, HANDLE), timeout=120)
            self.since = len(self.proxy.accesses)
            self.vm.run("dmesg -C")
            self.late()
            ms = int(re.search(LATE + r": no heartbeat for (\d+) ms", self.vm.dmesg()).group(1))
            self.assertGreaterEqual(ms, 900 * beats)
            if harness.SLOW == 1:
                self.assertLess(ms, 1000 * beats + 2000)
            self.back()
        self.all_works()


class Ends(LateTest):
    """Actions that do not wait for a late device longer than 10 s: then they reset it."""

    def ends(self, program, reason):
        """Check that the command in flight failed, and why the device was reset."""
        self.assertEqual(program.wait(60), 1)
        self.assertEqual(set(self.reasons()), {reason} if reason else set())
        self.proxy.held.clear()
        self.beats(True)

    def test_recover(self):
        """An administrator does not want to wait."""
        program = self.waiting()
        self.late()
        self.wait_reporter("fw", state="error")
        self.vm.run(RECOVER, timeout=120)
        self.ends(program, c.ORNIC_REASON_HEARTBEAT)
        self.wait_reporter("fw", state="healthy")
        self.all_works()

    def test_recover_again(self):
        """A late device does not answer reads, as if it had left the bus. A later recovery finds it again."""
        program = self.waiting()
        self.late()
        self.wait_reporter("fw", state="error")
        self.proxy.lies.gone = True
        self.assertNotEqual(self.vm.run(RECOVER, check=False, timeout=120).rc, 0)
        self.wait_said("device does not answer, no recovery")
        self.assertEqual(self.diagnose("fw")["state"], "gone")
        self.proxy.lies.gone = False
        self.ends(program, None)
        self.vm.run(RECOVER, timeout=120)
        self.wait_reporter("fw", state="healthy")
        self.all_works()

    def test_unbind(self):
        program = self.waiting()
        self.late()
        self.vm.run(UNBIND, timeout=60)
        self.ends(program, c.ORNIC_REASON_HEARTBEAT)

    def test_unbind_idle(self):
        """A teardown without commands waits for the device, too, and reads no register before it is back."""
        self.vm.run("rmmod ornic_ib && ip link set %s down" % INTERFACE)
        since = self.late()
        unbind = self.spawn(UNBIND)
        time.sleep(2)
        asked = [access for access in self.proxy.accesses[since:] if access[0] in (CONFIG, READ)]
        self.beats(True)
        self.assertEqual(unbind.wait(60), 0)
        self.assertEqual(asked, [])
        self.assertEqual(set(self.reasons()), {c.ORNIC_REASON_SHUTDOWN})

    def test_reload_again(self):
        """A reload gives up a late device that looks gone. When it is back, another reload finds it."""
        self.late()
        self.proxy.lies.gone = True
        self.assertNotEqual(self.vm.run(RELOAD, check=False, timeout=120).rc, 0)
        self.proxy.lies.gone = False
        self.beats(True)
        self.vm.run(RELOAD, timeout=120)
        self.all_works()

    def test_unload(self):
        """The RDMA driver alone is unloaded: the device recovers without it."""
        self.late()
        self.proxy.lies.on_completion = lambda command, completion: command.opcode != c.ORNIC_OP_QP_DESTROY
        self.vm.run("rmmod ornic_ib", timeout=60)
        self.proxy.lies.on_completion = None
        self.proxy.held.clear()
        self.beats(True)
        self.wait_said("device recovered")
        self.assertEqual(set(self.reasons()), {c.ORNIC_REASON_HEARTBEAT})

    def test_start(self):
        """ORN-ADM-29: a device that falls silent while it starts has failed after one time limit of a command."""
        self.truth()
        self.since = len(self.proxy.accesses)
        BadDevice.refused(self, registers={c.ORNIC_REG_CAP: timeouts(admin=LIMIT // 100)}, heartbeat=False,
                          on_command=lambda command: command.opcode != c.ORNIC_OP_KEY_CREATE)
        self.assertEqual(set(self.reasons()), {c.ORNIC_REASON_ADMIN_TIMEOUT})
        self.assertFalse(self.said("not answered within %d ms" % (2 * LIMIT)))

    def test_removed(self):
        """The removal of the function is no silence: commands fail at once."""
        self.need_programs()
        program = self.waiting()
        self.late()
        self.vm.run("insmod /tmp/selftests/ornic_offline.ko")
        self.addCleanup(self.vm.run, "rmmod ornic_offline", check=False)
        self.assertEqual(program.wait(60), 1)
        self.wait_said("function has left the bus")
        self.vm.run("rmmod ornic_offline")
        self.proxy.rules.reset()
        self.ends(program, None)


if __name__ == "__main__":
    tap.main()
