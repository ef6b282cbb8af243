#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The network interface in front of a device that rejects commands, sends late or dies while queues are replaced.

A change of the interface that fails leaves it as it was, and no kernel complains.
"""
import time

from proxied import INTERFACE, c, patient, tap
from test_bad_device import BadDevice

PEER = "10.88.0.77"                     # an address without an owner
WATCHDOG = 5                            # seconds after which the kernel reports a send queue that stands still
CREATES = "PD_CREATE CQ_CREATE QP_CREATE QP_MODIFY".split()


class Replace(BadDevice):
    def interface(self, command, check=True):
        return self.vm.run("i=%s; %s" % (INTERFACE, command), check=check)

    def mtu(self):
        return int(self.interface("cat /sys/class/net/$i/mtu").out)

    def send(self, count=3):
        """Send frames that nobody answers."""
        self.interface("ip neigh replace %s lladdr 02:00:00:00:00:77 dev $i; ping -c %d -i 0.05 -W 0.1 %s"
                       % (PEER, count, PEER), check=False)

    def fails(self, command):
        """Check that the change fails and that the interface still works."""
        self.assertNotEqual(self.interface(command, check=False).rc, 0)
        self.proxy.lies.on_command = None
        self.assertTrue(self.rejections)
        self.assertEqual(self.mtu(), 1500)
        self.works()
        self.assertEqual(self.reasons(), [])

    def created(self, name):
        self.load()
        self.send()                     # NAPI has then run
        for command in ("ip link set $i mtu 4000", "ethtool -G $i rx 256"):
            self.reject(getattr(c, "ORNIC_OP_" + name), c.ORNIC_ST_LIMIT)
            self.fails(command)

    def test_late_frames(self):
        """Frames that the device sends after the failed change are accounted like others."""
        self.load()
        self.proxy.lies.on_doorbell = lambda kind, number, value: kind != c.ORNIC_DB_SQ
        self.send()
        self.reject(c.ORNIC_OP_PORT_MODIFY, c.ORNIC_ST_BAD_PARAM, self.proxy.release)
        self.fails("ip link set $i mtu 4000")

    def test_dies(self):
        """The device dies when the new queues exist; a completion of the old ones is found later."""
        self.load()
        self.proxy.lies.mute = {vector for vector in self.proxy.vectors if vector}
        self.send()
        self.reject(c.ORNIC_OP_PORT_MODIFY, c.ORNIC_ST_BAD_PARAM,
                    lambda: self.proxy.put_event(0, {"type": c.ORNIC_EV_DEVICE_FATAL}))
        self.assertNotEqual(self.interface("ip link set $i mtu 4000", check=False).rc, 0)
        self.proxy.lies.on_command = None
        self.proxy.lies.mute = set()
        self.recovers(c.ORNIC_REASON_FATAL)

    def test_slow(self):
        """The kernel does not report the send queue when the device takes longer than that to replace the queues."""
        self.load(registers={c.ORNIC_REG_CAP: patient})
        self.interface("ip neigh replace %s lladdr 02:00:00:00:00:77 dev $i" % PEER)
        self.spawn("exec ping -q -f %s > /dev/null" % PEER)
        self.proxy.lies.on_completion = lambda command, _: command.opcode != c.ORNIC_OP_PORT_MODIFY
        change = self.spawn("ip link set %s mtu 4000" % INTERFACE)
        self.proxy.wait(lambda: self.proxy.held, "exchange the queues")
        time.sleep(2 * WATCHDOG)
        self.proxy.release()
        self.assertEqual(change.wait(60), 0)
        self.assertEqual(self.mtu(), 4000)
        self.works()

    def test_number_in_use(self):
        """ORN-SEC-16: the device returns the number of an existing CQ; the owner of that CQ keeps its events until the reset."""
        self.load()
        taken = [command.completion["number"] for command in self.proxy.commands if command.opcode == c.ORNIC_OP_CQ_CREATE]
        since = len(self.proxy.commands)
        self.proxy.lies.on_completion = self.command(c.ORNIC_OP_CQ_CREATE, number=taken[-1])
        self.assertNotEqual(self.interface("ip link set $i mtu 4000", check=False).rc, 0)
        self.assertNotIn(c.ORNIC_OP_CQ_DESTROY, [command.opcode for command in self.proxy.commands[since:]])
        self.proxy.lies.on_completion = None
        self.recovers(c.ORNIC_REASON_MALFORMED)


for verb in CREATES:
    setattr(Replace, "test_" + verb.lower(), lambda self, verb=verb: self.created(verb))

if __name__ == "__main__":
    tap.main()
