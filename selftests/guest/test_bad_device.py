#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The driver in front of a device that lies, stops or dies: a proxy (selftests/proxy) makes the device do so.

In every case no kernel complains and the driver can be unloaded. The clauses that a test names say how the driver must react.
"""
import re
import time

import harness
import kprobes
import nvme
from proxied import CONFIG, INTERFACE, LOAD, READ, UNLOAD, UP, UPDATES, WRITE, Lies, Proxied, c, pack, patient, tap, unpack
from rings import HOST_INDEX

GONE = 0xfffff0                         # a number that no object has
BEYOND = c.ORNIC_MAX_NUMBER + 1
UNKNOWN = 77                            # a status, or a type of event
BUS_MASTER = 4
ALONE = "ibv_rc_pingpong -d ornic0 -g 1 -n 20 -c"

A_PD = """
from pyverbs.device import Context
from pyverbs.pd import PD
context = Context(name="ornic0")
print("there", flush=True)
input()
PD(context)
print("done", flush=True)
input()
"""

A_CLOCK = """
from pyverbs.device import Context
context = Context(name="ornic0")
khz = context.query_device_ex().hca_core_clock
first = context.query_rt_values_ex()[1]
print("there", flush=True)
input()
print("%d ms" % ((context.query_rt_values_ex()[1] - first) // khz), flush=True)
"""

CGROUP = "/sys/fs/cgroup"
REGION = 128 << 20                      # bytes, in pages of 4 KiB
A_REGION = """
import ctypes, mmap
import pyverbs.enums as e
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
memory = mmap.mmap(-1, %d)
memory.madvise(mmap.MADV_NOHUGEPAGE)
for first in 0, 4096:                   # neighbours are not contiguous in physical memory, so each page has an entry in the list
    for at in range(first, len(memory), 8192):
        memory[at] = 1
pd = PD(Context(name="ornic0"))
print("there", flush=True)
input()
MR(pd, len(memory), e.IBV_ACCESS_LOCAL_WRITE, ctypes.addressof(ctypes.c_char.from_buffer(memory)))
print("done", flush=True)
input()
"""


def timeouts(**given):
    """Return a function for CAP with other timeouts, in units of 100 ms: ready, admin, reset."""
    def cap(value):
        for name, units in given.items():
            shift = getattr(c, "ORNIC_CAP_%s_TIMEOUT_SHIFT" % name.upper())
            value = value & ~(c.ORNIC_CAP_TIMEOUT_MASK << shift) | units << shift
        return value
    return cap


class BadDevice(Proxied):
    DEVICE_FATAL, PORT_ACTIVE, PORT_ERR = 8, 9, 10      # enum ib_event_type

    def setUp(self):
        super().setUp()
        self.proxy.lies = Lies()
        self.vm.run(UNLOAD, timeout=60)
        self.addCleanup(self.truth)
        self.since = len(self.proxy.accesses)
        self.rejections = []

    @classmethod
    def tearDownClass(cls):
        """Check that the device works again when it stops lying."""
        case = cls("works")
        case.setUp()
        case.works(load=True)
        case.judge()
        case.doCleanups()
        super().tearDownClass()

    def truth(self):
        """Unload the driver while the device lies."""
        self.proxy.release()
        self.vm.run(UNLOAD, timeout=60)
        self.proxy.lies = Lies()

    def load(self, **lies):
        """Load the driver; its device then has an interface."""
        self.proxy.lies = Lies(**lies)
        self.vm.run("%s && %s" % (LOAD, UP % 1), timeout=60)

    def refused(self, **lies):
        """Load the driver, which must reject the device."""
        self.proxy.lies = Lies(**lies)
        self.vm.run("insmod /lib/modules/$(uname -r)/updates/ornic.ko && ! ls /sys/bus/pci/drivers/ornic/*/net", timeout=60)

    def works(self, load=False):
        if load:
            self.vm.run(LOAD, timeout=60)
        self.vm.run("until { %s; }; do sleep 0.2; done" % (UP % 1), timeout=60)     # the interface is detached during a recovery
        # a recovering device may be shown as ACTIVE just before it disappears; then the program fails
        self.vm.run("{ until %s; do sleep 0.2; done; } & until listens 18515; do sleep 0.05; done; %s 10.88.0.1 && wait $! || kill 0"
                    % (ALONE, ALONE), timeout=120)

    def seen(self, kind, at=None):
        return self.proxy.seen(kind, at, self.since)

    def reasons(self):
        return [reason for reason in self.proxy.reasons(self.since) if reason]

    def vanishes(self):
        """Let the function leave the bus; an administrator does not wait for its return."""
        self.proxy.vanish()
        self.wait_said("device is late")
        self.vm.run("echo 0000:01:00.0 > /sys/bus/pci/drivers/ornic/unbind", timeout=60)

    def die(self):
        """Let the device say that it is dead."""
        self.proxy.put_event(0, {"type": c.ORNIC_EV_DEVICE_FATAL})

    def wait_said(self, text):
        self.vm.run("until_said '%s'" % text, timeout=120)

    def recovers(self, reason):
        """Check that the driver resets the device for this reason only, and brings it up again."""
        self.proxy.wait(self.reasons, "reset the device")
        self.works()
        self.assertEqual(set(self.reasons()), {reason})

    def python(self, program):
        process = self.spawn("exec python3 -c '%s'" % program)
        process.wait_for("there", 60)
        return process

    @staticmethod
    def once(opcode, status):
        """Return a hook that changes the status of the next of these commands, and a list that has the command then."""
        failed = []

        def hook(command, completion):
            if command.opcode == opcode and not failed:
                failed.append(command)
                completion["status"] = status
        return hook, failed

    def reject(self, opcode, status=c.ORNIC_ST_BUSY, then=None):
        """Reject this command from now on and do not execute it. then: a function to call first, each time."""
        def hook(command):
            if command.opcode != opcode:
                return True
            self.rejections.append(opcode)
            if then:
                then()
            command.completion = {"cmd_id": command.fields["cmd_id"], "opcode": opcode, "status": status, "number": 0}
            self.proxy.complete(command)
            return False
        self.proxy.lies.on_command = hook

    def page(self, kind, change):
        """Return a completion hook that changes an Identify page: change(fields) returns the changed fields."""
        layout = {c.ORNIC_ID_DEVICE: "ornic_identify_device", c.ORNIC_ID_PORT: "ornic_identify_port"}[kind]

        def hook(command, completion):
            queried = kind == c.ORNIC_ID_PORT and command.opcode == c.ORNIC_OP_PORT_QUERY
            asked = command.opcode == c.ORNIC_OP_IDENTIFY and command.input("ornic_identify_cmd")["page"] == kind
            if (queried or asked) and completion["status"] == c.ORNIC_ST_OK:
                fields = unpack(layout, self.proxy.memory.read(command.fields["out_addr"], command.fields["out_len"]))
                fields.update(change(fields))
                self.proxy.memory.write(command.fields["out_addr"], pack(layout, fields))
        return hook

    def command(self, opcode, /, **change):
        """Return a completion hook that changes the completion of one command."""
        def hook(command, completion):
            if command.opcode == opcode:
                completion.update(change)
        return hook

    def trace_events(self):
        """Trace the events of the device and its port that ib_core gets."""
        kprobes.trace(self, self.vm, "p:lab/dispatch ib_dispatch_event type=+16(%di):u32")

    def dispatched(self):
        """Return these events, in order."""
        types = (int(word) for word in re.findall(r" dispatch: .* type=(\d+)$", kprobes.traced(self.vm), re.M))
        return [event for event in types if event in (self.DEVICE_FATAL, self.PORT_ACTIVE, self.PORT_ERR)]


class Start(BadDevice):
    """Devices that cannot be started."""

    def test_other_major(self):
        """ORN-GEN-2, ORN-PCI-9: the driver writes no register of a device with an unknown version."""
        self.refused(registers={c.ORNIC_REG_VERSION: lambda value: (c.ORNIC_VERSION_MAJOR + 1) << 16})
        self.assertEqual(self.seen(WRITE), [])
        self.assertTrue(self.seen(READ, c.ORNIC_REG_VERSION))

    def test_other_magic(self):
        """ORN-PCI-9."""
        self.refused(registers={c.ORNIC_REG_MAGIC: lambda value: value ^ 1})
        self.assertEqual(self.seen(WRITE), [])

    def test_not_there(self):
        """ORN-PCI-7."""
        self.refused(gone=True)
        self.assertEqual(self.seen(WRITE), [])

    def test_minor_version(self):
        """A later minor version does not change the driver's behaviour."""
        self.load(registers={c.ORNIC_REG_VERSION: lambda value: value + 7})
        self.works()

    def test_never_ready(self):
        """ORN-CTL-8."""
        self.refused(registers={c.ORNIC_REG_STATUS: lambda value: value & ~c.ORNIC_STS_READY})
        self.assertEqual(self.reasons(), [c.ORNIC_REASON_ENABLE_TIMEOUT])

    def test_fatal_at_once(self):
        self.refused(registers={c.ORNIC_REG_STATUS: lambda value: value and value | c.ORNIC_STS_FATAL})
        self.assertEqual(self.reasons(), [c.ORNIC_REASON_FATAL])

    def test_memory_not_shared(self):
        self.refused(registers={c.ORNIC_REG_STATUS: lambda value: value and value | c.ORNIC_STS_FATAL,
                                c.ORNIC_REG_SYNDROME: lambda _: c.ORNIC_SYN_HOST_MEMORY})
        self.assertTrue(self.said("syndrome 0x00020001, it does not share this machine's memory"))

    def test_wrong_nonce(self):
        """ORN-CTL-12: the device does not share the host's memory."""
        def status(value):
            if value & c.ORNIC_STS_READY:
                self.proxy.status_block("nonce", 1)
            return value
        self.refused(registers={c.ORNIC_REG_STATUS: status})
        self.assertEqual(self.reasons(), [c.ORNIC_REASON_MALFORMED])
        self.assertTrue(self.said("does not share this machine's memory"))

    def test_unknown_features(self):
        """ORN-FEA-5, ORN-FEA-6, ORN-GEN-7: Identify pages contain features and fields that the driver does not know."""
        def more(command, completion):
            if command.opcode == c.ORNIC_OP_IDENTIFY and completion["status"] == c.ORNIC_ST_OK:
                at, length = command.fields["out_addr"], command.fields["out_len"]
                page = bytearray(self.proxy.memory.read(at, length))
                if command.input("ornic_identify_cmd")["page"] == c.ORNIC_ID_DEVICE:
                    page[6:16] = b"\xff" * 10           # feature bits from 48 on and the second word
                    page[-192:] = b"\xff" * 192         # reserved
                self.proxy.memory.write(at, page)
        self.load(on_completion=more)
        self.works()
        accepted = [command.input("ornic_features_cmd") for command in self.proxy.commands
                    if command.opcode == c.ORNIC_OP_SET_FEATURES][-1]
        self.assertEqual((accepted["features0"] >> 48, accepted["features1"]), (0, 0))
        self.assertTrue(accepted["features0"])

    def test_event_queue_number(self):
        """ORN-SEC-16: the number is out of range for event queues."""
        self.refused(on_completion=self.command(c.ORNIC_OP_EQ_CREATE, number=BEYOND))
        self.assertEqual(self.reasons(), [c.ORNIC_REASON_MALFORMED])

    def test_key_number(self):
        """ORN-SEC-16: the number is out of range for keys."""
        self.refused(on_completion=self.command(c.ORNIC_OP_KEY_CREATE, number=5))
        self.assertEqual(self.reasons(), [c.ORNIC_REASON_MALFORMED])


class Registration(BadDevice):
    """Events while ib_core registers the RDMA device."""

    def loads(self, *events):
        """Load the driver while the device has these events. They come when clients start, which is after ib_core has read the
        state of the port. Return the events that ib_core got."""
        gsi = []

        def hook(command, _):
            if command.opcode == c.ORNIC_OP_QP_CREATE and command.input("ornic_qp_create_cmd")["type"] == c.ORNIC_QPT_GSI:
                gsi.append(command)
            return not gsi
        self.vm.run("modprobe ib_core; insmod %s/ornic.ko" % UPDATES)
        self.trace_events()
        self.proxy.lies = Lies(on_completion=hook)
        loading = self.spawn("insmod %s/ornic_ib.ko" % UPDATES)
        self.proxy.wait(lambda: gsi, "create the GSI queue pair")
        before = self.dispatched()
        for event in events:
            self.proxy.put_event(0, {"type": event, "number": 1})
        if c.ORNIC_EV_DEVICE_FATAL not in events:       # else the commands in flight fail, and the registration continues
            ring = self.proxy.eqs[0].guest
            self.proxy.wait(lambda: ring.host_index() == ring.producer, "read the events")
            self.vm.run("sleep 0.5")            # until they are delivered
            self.assertEqual((before, self.dispatched()), ([], []))
            self.proxy.release()
        self.proxy.lies = Lies()
        self.assertEqual(loading.wait(60), 0)
        return self.dispatched()

    def test_link_change(self):
        """ib_core gets the last event after the registration."""
        self.assertEqual(self.loads(c.ORNIC_EV_PORT_ACTIVE, c.ORNIC_EV_PORT_ERR)[:1], [self.PORT_ERR])
        self.works()

    def test_death(self):
        """ib_core learns that the device died, else processes would wait for ever if nobody recovers it."""
        self.assertIn(self.DEVICE_FATAL, self.loads(c.ORNIC_EV_DEVICE_FATAL))
        self.recovers(c.ORNIC_REASON_FATAL)

    def test_no_link_change(self):
        self.assertEqual(self.loads(), [])
        self.works()


class Restarts(BadDevice):
    """ORN-CTL-40: the device fails because it restarted."""

    def fails(self, syndrome):
        self.since = len(self.proxy.accesses)
        self.vm.run("dmesg -C")
        self.proxy.put_event(0, {"type": c.ORNIC_EV_DEVICE_FATAL, "syndrome": syndrome})

    def test_often(self):
        """The driver recovers it each time, and does not count these recoveries."""
        self.load()
        for _ in range(harness.QUICK_RESETS + 2):
            self.fails(c.ORNIC_SYN_RESTARTED)
            self.wait_said("device restarted and lost its state, syndrome 0x00030001")
            self.wait_said("device recovered")
        for _ in range(harness.QUICK_RESETS):
            self.fails(c.ORNIC_SYN_ADMIN_RING)
            self.wait_said("device recovered")
        self.works()
        self.fails(c.ORNIC_SYN_ADMIN_RING)
        self.wait_said("in short succession, no recovery")

    def test_status(self):
        """The status block alone says so."""
        self.load()
        self.since = len(self.proxy.accesses)
        self.proxy.status_block("syndrome", c.ORNIC_SYN_RESTARTED)
        self.proxy.status_block("status", c.ORNIC_STS_READY | c.ORNIC_STS_FATAL)
        self.wait_said("device restarted and lost its state")
        self.recovers(c.ORNIC_REASON_FATAL)


class Commands(BadDevice):
    """Commands with an unexpected result."""

    def test_unknown_status(self):
        """ORN-ADM-28: an unknown status is an ordinary failure."""
        self.load()
        program = self.python(A_PD)
        self.proxy.lies.on_completion = self.command(c.ORNIC_OP_PD_CREATE, status=UNKNOWN)
        program.write(b"\n")
        self.assertEqual(program.wait(60), 1)
        self.assertIn("PyverbsRDMAError", program.text())
        self.proxy.lies.on_completion = None
        self.works()
        self.assertEqual(self.reasons(), [])

    def test_lost_interrupt(self):
        """ORN-ADM-5: the driver finds the completion of a command that timed out although the interrupt was lost."""
        self.load(registers={c.ORNIC_REG_CAP: timeouts(admin=30)})
        program = self.python(A_PD)
        self.proxy.lies.mute = {0}            # that of the admin queue; the interface has its own
        program.write(b"\n")
        program.wait_for("done", 60)
        self.proxy.lies.mute = set()
        self.assertTrue(self.said("completed without an interrupt"))
        self.works()
        self.assertEqual(self.reasons(), [])

    def test_never_completes(self):
        """ORN-ADM-5, ORN-ADM-29: a command that never completes fails and causes a reset."""
        self.load(registers={c.ORNIC_REG_CAP: timeouts(admin=30)})
        program = self.python(A_PD)
        self.proxy.lies.on_command = lambda command: command.opcode != c.ORNIC_OP_PD_CREATE
        program.write(b"\n")
        self.proxy.wait(lambda: [command for command in self.proxy.flight.values() if command.opcode == c.ORNIC_OP_PD_CREATE],
                        "send the command")
        self.proxy.lies.on_command = None
        self.assertEqual(program.wait(60), 1)
        self.recovers(c.ORNIC_REASON_ADMIN_TIMEOUT)

    def accepts_late(self, heart, beats=True, registers=()):
        """Hold a completion for longer than the time limit of 2 s; the driver must accept it. heart: what it then logs."""
        self.load(registers={c.ORNIC_REG_CAP: timeouts(admin=20), **dict(registers)})
        program = self.python(A_PD)
        self.proxy.lies.heartbeat = beats
        self.proxy.lies.on_completion = lambda command, completion: command.opcode != c.ORNIC_OP_PD_CREATE
        program.write(b"\n")
        self.proxy.wait(lambda: self.proxy.held, "send the command")
        self.vm.run("until_said 'not answered within 2000 ms, device has %s heartbeat'" % heart, timeout=60)
        self.proxy.release()
        program.wait_for("done", 60)
        self.proxy.lies.heartbeat = True
        self.works()
        self.assertEqual(self.reasons(), [])

    def test_late(self):
        """ORN-ADM-29: while the device has a heartbeat, the driver accepts a completion after the time limit. ORN-RNG-10: a time
        limit is no event."""
        self.accepts_late("a")
        self.assertTried("ORN-RNG-10")

    def test_late_with_slow_heartbeat(self):
        """ORN-ADM-29: if two beats do not fit in the time limit, a missing beat proves nothing."""
        self.accepts_late("a slow", beats=False, registers={c.ORNIC_REG_HB_MS: lambda _: 10000})

    def test_slow_clock(self):
        """The driver reads the clock again if the command took long, because system time is then known badly."""
        self.load()
        program = self.python(A_CLOCK)
        slow = iter([False])
        self.proxy.lies.on_completion = lambda command, completion: command.opcode != c.ORNIC_OP_CLOCK_READ or next(slow, True)
        program.write(b"\n")
        self.proxy.wait(lambda: self.proxy.held, "read the clock")
        time.sleep(2)
        self.proxy.release()
        self.assertGreaterEqual(int(program.wait_for(r"(\d+) ms", 60).group(1)), 2000)

    def test_moderation_rejected(self):
        """ethtool shows the reason to the administrator, and the values stay unchanged."""
        self.load()
        self.proxy.lies.on_completion = self.command(c.ORNIC_OP_CQ_MODIFY, status=c.ORNIC_ST_NO_RESOURCE)
        result = self.vm.run("i=%s; ethtool -C $i rx-usecs 10 rx-frames 4" % INTERFACE, check=False)
        self.proxy.lies.on_completion = None
        self.assertNotEqual(result.rc, 0)
        self.assertIn("ornic: the device rejected the moderation", result.out + result.err)
        self.assertRegex(self.vm.run("i=%s; ethtool -c $i" % INTERFACE).out, r"rx-usecs:\s+0\b")

    def test_no_heartbeat(self):
        """ORN-ADM-29: the driver waits no longer than one time limit for a device without a heartbeat."""
        self.load(registers={c.ORNIC_REG_CAP: timeouts(admin=30), c.ORNIC_REG_HB_MS: lambda _: 0})
        program = self.python(A_PD)
        self.vm.run("dmesg -C")
        self.proxy.lies.heartbeat = False
        self.proxy.lies.on_command = lambda command: command.opcode != c.ORNIC_OP_PD_CREATE
        program.write(b"\n")
        self.proxy.wait(self.reasons, "reset the device")
        self.proxy.lies.on_command = None
        self.proxy.lies.heartbeat = True
        self.assertEqual(program.wait(60), 1)
        self.assertTrue(self.said("not answered within 3000 ms, device has no heartbeat"))
        self.assertFalse(self.said("not answered within 6000 ms"))
        self.recovers(c.ORNIC_REASON_ADMIN_TIMEOUT)

    def test_list_is_accounted(self):
        """The list of a region's pages counts as memory of the process that registers it, in its cgroup."""
        self.load(registers={c.ORNIC_REG_CAP: patient})
        program = self.spawn("echo +memory > {g}/cgroup.subtree_control; mkdir -p {g}/region; echo $$ > {g}/region/cgroup.procs; "
                             "exec python3 -c '{program}'".format(g=CGROUP, program=A_REGION % REGION))
        program.wait_for("there", 120)
        before = self.kernel_memory()
        self.proxy.lies.on_completion = lambda command, completion: command.opcode != c.ORNIC_OP_KEY_CREATE
        program.write(b"\n")
        self.proxy.wait(lambda: self.proxy.held, "register the region")
        during = self.kernel_memory()
        self.proxy.release()
        program.wait_for("done", 60)
        self.assertGreaterEqual(during - before, 8 * (REGION >> 12))

    def test_long_list_yields(self):
        """A task that registers a large region offers its processor after each leaf of the list: it allocates, fills, maps, frees it."""
        if self.vm.run("grep -E 'none|voluntary' /sys/kernel/debug/sched/preempt && echo voluntary > /sys/kernel/debug/sched/preempt",
                       check=False).rc:
            self.skipTest("the kernel of %s always preempts tasks: cond_resched() does nothing" % harness.GUEST)
        self.load()
        program = self.python(A_REGION % REGION)
        kprobes.trace(self, self.vm, "p:lab/yield __cond_resched from=+0(%sp):symbol")
        program.write(b"\n")
        program.wait_for("done", 60)
        self.vm.run("echo 0 > %s/events/lab/enable" % kprobes.TRACING)      # else reading the trace extends it
        callers = re.findall(r" yield: .* from=\"?ornic_\S*", kprobes.traced(self.vm))
        self.assertGreaterEqual(len(callers), 4 * (REGION >> 12) // c.ORNIC_PAGES_LEAF_ENTRIES)

    def kernel_memory(self):
        """Return the bytes that the kernel has allocated on behalf of the cgroup. It adds them up every 2 seconds."""
        return int(self.vm.run("sleep 4; awk '/^kernel / { print $2 }' %s/region/memory.stat" % CGROUP).out)

    def test_long_list(self):
        """ORN-ADM-5: the time limit grows by one admin timeout for each 2^22 pages of all lists in flight."""
        self.need_programs()
        self.load(registers={c.ORNIC_REG_CAP: timeouts(admin=10)})
        # The driver names multiples of a limit, too, so some tell nothing. One list after the other would extend the last by 4000.
        for pages, copies, limit, never in ((1 << 21, 1, 1000, ()), (1 << 22, 1, 2000, (1000,)), (1 << 22, 2, 3000, (1000,)),
                                            (5 << 20, 4, 6000, (1000, 5000))):
            self.proxy.lies.on_completion = lambda command, completion: command.opcode != c.ORNIC_OP_KEY_CREATE
            self.vm.run("rmmod ornic_ib && dmesg -C")
            program = self.spawn("insmod /tmp/selftests/ornic_command.ko pages=%d copies=%d" % (pages, copies))
            self.proxy.wait(lambda copies=copies: len(self.proxy.held) == copies, "send the commands")
            self.vm.run("until_said 'not answered within %d ms'" % limit, timeout=60)
            said = [int(ms) for ms in re.findall(r"not answered within (\d+) ms", self.vm.dmesg())]
            self.assertFalse(set(said) & set(never), said)
            self.proxy.release()
            self.assertEqual(program.wait(60), 0)
            self.vm.run("rmmod ornic_command && insmod %s/ornic_ib.ko" % UPDATES)
        self.works()
        self.assertEqual(self.reasons(), [])

    def fails_in_flight(self, reason, die):
        """Check that a command in flight when the device dies fails long before its time limit, and that a process with the
        device open ends."""
        self.load(registers={c.ORNIC_REG_CAP: patient})
        waiting = self.spawn("exec " + ALONE)
        self.vm.wait_listen(18515)
        program = self.python(A_PD)
        self.proxy.lies.on_command = lambda command: command.opcode != c.ORNIC_OP_PD_CREATE
        program.write(b"\n")
        self.proxy.wait(lambda: [command for command in self.proxy.flight.values() if command.opcode == c.ORNIC_OP_PD_CREATE],
                        "send the command")
        self.proxy.lies.on_command = None
        die()
        self.assertEqual(program.wait(60), 1)
        self.assertNotIn(c.ORNIC_REASON_ADMIN_TIMEOUT, self.reasons())
        waiting.kill()
        if reason:
            self.recovers(reason)

    def test_fatal_event(self):
        """ORN-CTL-32: the device reports FATAL by an event."""
        self.fails_in_flight(c.ORNIC_REASON_FATAL, lambda: self.proxy.put_event(0, {"type": c.ORNIC_EV_DEVICE_FATAL}))

    def test_fatal_status(self):
        """ORN-CTL-32: the device reports FATAL in the status block alone."""
        self.fails_in_flight(c.ORNIC_REASON_FATAL,
                             lambda: self.proxy.status_block("status", c.ORNIC_STS_READY | c.ORNIC_STS_FATAL))

    def test_gone(self):
        """ORN-PCI-7: after MAGIC reads as all ones, the driver accesses no register, not even when it is unloaded. Until then it
        takes the function for late."""
        self.fails_in_flight(None, self.vanishes)
        self.vm.run(UNLOAD, timeout=60)
        accesses = [access for access in self.proxy.accesses[self.since:] if access[0] != CONFIG]
        last = (READ, c.ORNIC_REG_MAGIC, 0xffffffff)
        self.assertIn(last, accesses)
        self.assertEqual(accesses[accesses.index(last) + 1:], [])


class Consumers(BadDevice):
    """ORN-QP-22: the kernel's consumers get the completions that a dead device no longer writes."""

    def dies(self, die):
        self.load(registers={c.ORNIC_REG_CAP: patient})
        nvme.target(self, self.vm, "10.88.0.1")
        self.addCleanup(self.vm.run, "rmmod nvme_rdma", check=False)
        self.addCleanup(nvme.disconnect, self.vm)
        # a host that disconnects informs its target, and waits for the answer up to the usual limit
        self.vm.run("modprobe nvme-rdma && echo 5 > /sys/module/nvme_core/parameters/admin_timeout")
        nvme.connect(self.vm, "10.88.0.1")
        self.vm.run("dd if=/dev/nvme0n1 of=/dev/null bs=64k count=16 iflag=direct")
        die()

    def test_fatal(self):
        """The reset comes when the last consumer has released its objects."""
        self.dies(lambda: self.proxy.put_event(0, {"type": c.ORNIC_EV_DEVICE_FATAL}))
        self.recovers(c.ORNIC_REASON_FATAL)

    def test_gone(self):
        self.dies(self.vanishes)
        self.vm.run("while [ -e /sys/class/infiniband/ornic0 ]; do sleep 0.1; done", timeout=60)


class Malformed(BadDevice):
    """ORN-SEC-7, ORN-SEC-16: malformed entries that no correct device writes. Each causes a reset with reason MALFORMED, from
    which the driver recovers."""

    def malformed(self, write):
        self.load()
        write()
        self.recovers(c.ORNIC_REASON_MALFORMED)

    def event(self, queue, **fields):
        self.malformed(lambda: self.proxy.put_event(queue, fields))

    def test_completion_of_none(self):
        self.event(1, type=c.ORNIC_EV_COMPLETION, number=0)

    def test_completion_beyond(self):
        self.event(1, type=c.ORNIC_EV_COMPLETION, number=0xffffffff)

    def test_completion_in_async_queue(self):
        self.event(0, type=c.ORNIC_EV_COMPLETION, number=GONE)

    def test_async_in_completion_queue(self):
        self.event(1, type=c.ORNIC_EV_ADMIN)

    def test_queue_pair_beyond(self):
        self.event(0, type=c.ORNIC_EV_QP_FATAL, number=BEYOND)

    def test_queue_of_none(self):
        self.event(0, type=c.ORNIC_EV_CQ_ERR, number=0)

    def test_port_beyond(self):
        self.event(0, type=c.ORNIC_EV_PORT_ERR, number=200)

    def test_unknown_command(self):
        self.malformed(lambda: self.proxy.put_completion({"cmd_id": 0xabc, "opcode": c.ORNIC_OP_NOP}))

    def test_other_opcode(self):
        self.load()
        program = self.python(A_PD)
        self.proxy.lies.on_completion = self.command(c.ORNIC_OP_PD_CREATE, opcode=c.ORNIC_OP_NOP)
        program.write(b"\n")
        self.proxy.wait(self.reasons, "reset the device")
        self.proxy.lies.on_completion = None
        self.recovers(c.ORNIC_REASON_MALFORMED)

    def test_created_number(self):
        self.load()
        program = self.python(A_PD)
        self.proxy.lies.on_completion = self.command(c.ORNIC_OP_PD_CREATE, number=BEYOND)
        program.write(b"\n")
        self.proxy.wait(self.reasons, "reset the device")
        self.proxy.lies.on_completion = None
        self.recovers(c.ORNIC_REASON_MALFORMED)

    def fake_completion(self, queue_pair_type, receive, **fields):
        """Write a completion of a work request that a queue pair of the kernel has not posted, until the driver has seen it: the
        interface sends at any time, and a true completion then takes the place of the false one."""
        qp = next(command for command in reversed(self.proxy.commands) if command.opcode == c.ORNIC_OP_QP_CREATE and
                  command.input("ornic_qp_create_cmd")["type"] == queue_pair_type)
        number = qp.input("ornic_qp_create_cmd")["recv_cq" if receive else "send_cq"]
        fields = {"qpn": qp.completion["number"], "opcode": c.ORNIC_WC_RECV if receive else c.ORNIC_WC_SEND, **fields}

        def seen():
            if not self.reasons():
                self.proxy.fake_cqe(number, fields)
            return self.reasons()
        self.proxy.wait(seen, "reset the device")

    def test_interface_receive(self):
        self.malformed(lambda: self.fake_completion(c.ORNIC_QPT_RAW, True, wqe_id=0x12345678, byte_len=64))

    def test_interface_receive_length(self):
        """More bytes than the completed receive has room for: the device wrote past its buffer. The frame does not reach the stack."""
        self.malformed(lambda: self.fake_completion(c.ORNIC_QPT_RAW, True, wqe_id=None, byte_len=0x10000))
        self.assertTrue(self.said("malformed device output: receive completion"))
        self.assertFalse(self.said("receive of"))

    def test_interface_send(self):
        self.malformed(lambda: self.fake_completion(c.ORNIC_QPT_RAW, False, wqe_id=0x12345678))

    def test_verbs_receive(self):
        self.malformed(lambda: self.fake_completion(c.ORNIC_QPT_GSI, True, wqe_id=0x12345678, byte_len=64))

    def test_verbs_receive_length(self):
        """More bytes than the completed receive has room for: consumers would read beyond it."""
        self.malformed(lambda: self.fake_completion(c.ORNIC_QPT_GSI, True, wqe_id=0, byte_len=0x10000))
        self.assertTrue(self.said("more bytes than a receive has room for"))

    def test_verbs_receive_skipped(self):
        """Receives complete in order. Nobody would hear of those that the device passes over, and a consumer may wait for them."""
        self.malformed(lambda: self.fake_completion(c.ORNIC_QPT_GSI, True, wqe_id=1, byte_len=64))
        self.assertTrue(self.said("no completion of an earlier work request"))

    def test_verbs_send_skipped(self):
        """Two connection requests that the device does not see: the second one completes."""
        self.load()
        qp = next(command for command in reversed(self.proxy.commands) if command.opcode == c.ORNIC_OP_QP_CREATE and
                  command.input("ornic_qp_create_cmd")["type"] == c.ORNIC_QPT_GSI)
        self.proxy.lies.on_doorbell = lambda kind, number, word: (kind, number) != (c.ORNIC_DB_SQ, qp.completion["number"])
        self.addCleanup(setattr, self.proxy.lies, "on_doorbell", None)
        self.vm.run("ip neigh replace %s lladdr 02:00:00:00:00:77 dev %s" % (Connecting.NOBODY, INTERFACE))
        record = qp.input("ornic_qp_create_cmd")["sq_record"]
        for port in 1, 2:
            self.spawn("rping -c -a %s -p %d" % (Connecting.NOBODY, port))
        self.proxy.wait(lambda: self.proxy.memory.word(record + HOST_INDEX) >= 2, "posted two requests")
        self.fake_completion(c.ORNIC_QPT_GSI, False, wqe_id=1)
        self.proxy.lies.on_doorbell = None
        self.recovers(c.ORNIC_REASON_MALFORMED)
        self.assertTrue(self.said("no completion of an earlier work request"))

    def test_verbs_status(self):
        self.malformed(lambda: self.fake_completion(c.ORNIC_QPT_GSI, True, wqe_id=0, status=200))


class Harmless(BadDevice):
    """Events and interrupts that do not cause a reset."""

    def test_gone_objects(self):
        """ORN-SEC-16: the driver drops events of objects that no longer exist, if the number is in range."""
        self.load()
        self.proxy.put_event(1, {"type": c.ORNIC_EV_COMPLETION, "number": GONE})
        for kind in (c.ORNIC_EV_CQ_ERR, c.ORNIC_EV_QP_FATAL, c.ORNIC_EV_LAST_WQE, c.ORNIC_EV_SRQ_LIMIT):
            self.proxy.put_event(0, {"type": kind, "number": GONE})
        self.works()
        self.assertEqual(self.reasons(), [])

    def test_unknown_events(self):
        """ORN-GEN-7."""
        self.load()
        for kind in (UNKNOWN, c.ORNIC_EV_PAGE_FAULT, 0xc5, 0xff, 0):
            self.proxy.put_event(0, {"type": kind, "number": 0xffffffff, "info0": 0xffffffff, "data": b"\xff" * 24, "res0": 1})
        self.works()
        self.assertEqual(self.reasons(), [])

    def test_invented_completions(self):
        """ORN-SEC-7: completion events of CQs of the kernel that no entry caused. One CQ is never armed, because its consumer
        polls it directly; its handler must not be called."""
        self.need_programs()
        self.load()
        since = len(self.proxy.commands)
        self.vm.run("insmod /tmp/selftests/ornic_ktest.ko objects=ornic0")
        self.addCleanup(self.vm.run, "rmmod ornic_ktest", check=False)
        for command in self.proxy.commands[since:]:
            if command.opcode == c.ORNIC_OP_CQ_CREATE:
                event = {"type": c.ORNIC_EV_COMPLETION, "number": command.completion["number"]}
                self.proxy.put_event(command.input("ornic_cq_create_cmd")["eq"], event, event)
        self.works()
        self.vm.run("rmmod ornic_ktest")
        self.assertEqual(self.reasons(), [])

    def test_completion_lost(self):
        """A removal does not wait for ever for a consumer whose completion event was lost: the device is given up after 30 s."""
        self.need_programs()
        self.load()
        since = len(self.proxy.commands)
        self.vm.run("insmod /tmp/selftests/ornic_ktest.ko objects=ornic0")
        queues = [command.completion["number"] for command in self.proxy.commands[since:] if command.opcode == c.ORNIC_OP_CQ_CREATE]
        lost = []

        def lose(_queue, entry):
            event = unpack("ornic_eqe", entry)
            if event["type"] != c.ORNIC_EV_COMPLETION or event["number"] not in queues:
                return [entry]
            lost.append(entry)
            return []
        self.proxy.lies.on_event = lose
        drain = self.spawn("rmmod ornic_ktest")
        self.proxy.wait(lambda: lost, "lose an event")
        self.vm.run("rmmod ornic_ib", timeout=90)
        self.assertEqual(drain.wait(30), 0)
        self.assertTrue(self.said("still in use 30 s after its removal began"))
        self.proxy.lies.on_event = None
        self.vm.run("insmod /lib/modules/$(uname -r)/updates/ornic_ib.ko", timeout=60)
        self.recovers(c.ORNIC_REASON_EVENTS_LOST)

    def test_interrupt_storm(self):
        """ORN-SEC-17: spurious interrupts cost no more than the interrupts themselves."""
        self.load()
        for _ in range(3000):
            self.proxy.interrupt(0)
            self.proxy.interrupt(1)
        self.works()
        self.assertEqual(self.reasons(), [])

    def test_event_storm(self):
        """ORN-SEC-17: the device fills the event queue whenever there is room, and the VM stays responsive."""
        self.load()
        self.proxy.storm(1, {"type": c.ORNIC_EV_COMPLETION, "number": GONE})
        self.vm.run("ibv_devinfo && ls /proc && sleep 2 && ibv_devinfo", timeout=60)
        self.proxy.storm(None)
        self.works()
        self.assertEqual(self.reasons(), [])


class Changed(BadDevice):
    """A device that is different after a reset, because its software was updated or its operator reconfigured it."""

    FLR = "echo 1 > /sys/bus/pci/devices/0000:01:00.0/reset"

    def features(self, without):
        return self.page(c.ORNIC_ID_DEVICE, lambda fields: {"features0": fields["features0"] & ~(1 << without)})

    def interface(self, command):
        return self.vm.run("i=%s; %s" % (INTERFACE, command)).out

    def comes_back(self, hook):
        self.proxy.lies.on_completion = hook
        self.vm.run("dmesg -C; " + self.FLR, timeout=60)
        self.vm.run(UP % 1, timeout=60)
        self.assertFalse(self.said("cannot be restarted"))

    def test_without_checksums(self):
        """The offload is off while the device does not have it, and on again afterwards."""
        state = "ethtool -k $i | grep tx-checksum-ip-generic"
        self.load()
        self.assertIn(": on", self.interface(state))
        self.comes_back(self.features(c.ORNIC_F_TX_CSUM))
        self.assertIn(": off", self.interface(state))
        self.works()
        self.comes_back(None)
        self.assertIn(": on", self.interface(state))
        self.works()

    def test_fewer_sges(self):
        self.load()
        self.comes_back(self.page(c.ORNIC_ID_DEVICE, lambda _: {"max_send_sge": 1, "max_recv_sge": 1}))
        self.works()
        create = [command for command in self.proxy.commands if command.opcode == c.ORNIC_OP_QP_CREATE and
                  command.input("ornic_qp_create_cmd")["type"] == c.ORNIC_QPT_RAW][-1].input("ornic_qp_create_cmd")
        self.assertEqual((create["max_send_sge"], create["max_recv_sge"]), (1, 1))

    def test_smaller_queues(self):
        self.load()
        self.comes_back(self.page(c.ORNIC_ID_DEVICE, lambda _: {"log_max_sq": 6, "log_max_rq": 7, "log_max_cq": 6}))
        self.assertRegex(self.interface("ethtool -g $i"), r"(?s)Current hardware settings:.*RX:\s+64\b.*TX:\s+64\b")

    def test_smaller_frames(self):
        """The MTU follows, and the port is never set to more. Announcing it reads no memory beyond the event (KASAN)."""
        self.load()
        self.interface("ip link set $i mtu 9000")
        first = len(self.proxy.commands)
        self.comes_back(self.page(c.ORNIC_ID_PORT, lambda _: {"max_frame": 2000}))
        self.assertRegex(self.interface("ip -d link show $i"), r"(?s)mtu 2000 .*maxmtu 2000")
        changes = [command.input("ornic_port_modify_cmd") for command in self.proxy.commands[first:]
                   if command.opcode == c.ORNIC_OP_PORT_MODIFY]
        self.assertEqual({change["max_frame"] for change in changes if change["mask"] & c.ORNIC_PORT_M_FRAME}, {2000})

    def test_other_statistics(self):
        """The driver reads the list again; the device returns half of it."""
        names = "ethtool -S $i | grep -vc driver_"
        self.load()
        before = int(self.interface(names))
        self.comes_back(self.page(c.ORNIC_ID_DEVICE, lambda fields: {"stat_count": fields["stat_count"] // 2}))
        self.assertLess(int(self.interface(names)), before)

    def test_other_address(self):
        """The driver adopts the device's new address if it cannot set the old one."""
        first = len(self.proxy.commands)
        self.load()
        self.comes_back(self.page(c.ORNIC_ID_PORT, lambda fields: {
            "current_mac": bytes.fromhex("020000990077"), "flags": fields["flags"] & ~c.ORNIC_PORT_F_MAC_CHANGE}))
        self.assertIn("02:00:00:99:00:77", self.interface("ip link show $i"))
        self.assertFalse([command for command in self.proxy.commands[first:] if command.opcode == c.ORNIC_OP_PORT_MODIFY and
                          command.input("ornic_port_modify_cmd")["mask"] & c.ORNIC_PORT_M_MAC])

    def test_no_address(self):
        """The driver gives the port a random address and keeps it through a reset."""
        none = self.page(c.ORNIC_ID_PORT, lambda _: {"current_mac": bytes(6)})
        self.load(on_completion=none)
        macs = [command.input("ornic_port_modify_cmd")["mac"] for command in self.proxy.commands
                if command.opcode == c.ORNIC_OP_PORT_MODIFY and
                command.input("ornic_port_modify_cmd")["mask"] & c.ORNIC_PORT_M_MAC]
        shown = self.interface("cat /sys/class/net/$i/address").strip()
        self.assertTrue(macs, "no address was set")
        self.assertEqual(bytes(macs[-1]).hex(":"), shown)
        self.comes_back(none)
        self.works()
        self.assertEqual(self.interface("cat /sys/class/net/$i/address").strip(), shown)

    def test_no_address_ever(self):
        """ORN-PORT-10: a port without an address that accepts none."""
        self.refused(on_completion=self.page(c.ORNIC_ID_PORT, lambda fields: {
            "current_mac": bytes(6), "flags": fields["flags"] & ~c.ORNIC_PORT_F_MAC_CHANGE}))
        self.assertTrue(self.said("no valid MAC address"))

    def test_other_time_limits(self):
        """The admin timeout and the heartbeat period are read again."""
        self.load(registers={c.ORNIC_REG_CAP: patient, c.ORNIC_REG_HB_MS: lambda _: 3600000})
        self.proxy.lies.registers = {c.ORNIC_REG_CAP: timeouts(admin=10)}
        self.vm.run(self.FLR, timeout=60)
        self.works()
        program = self.python(A_PD)
        self.proxy.lies.on_completion = lambda command, completion: command.opcode != c.ORNIC_OP_PD_CREATE
        program.write(b"\n")
        self.vm.run("until_said 'not answered within 1000 ms'", timeout=60)
        self.proxy.release()
        program.wait_for("done", 60)
        program.kill()
        self.since = len(self.proxy.accesses)
        self.proxy.status_block("status", c.ORNIC_STS_READY | c.ORNIC_STS_FATAL)
        self.recovers(c.ORNIC_REASON_FATAL)

    def rejected(self, register, change, said):
        """Check that the loaded driver rejects a device that comes back like this, and uses one that is as before."""
        self.proxy.lies.registers = {register: change}
        self.vm.run("dmesg -C; " + self.FLR, timeout=60)
        self.assertTrue(self.said(said))
        self.proxy.lies.registers = {}
        self.vm.run(self.FLR, timeout=60)
        self.works()

    def test_other_doorbell_pages(self):
        """Processes may have mapped them."""
        self.load()
        self.rejected(c.ORNIC_REG_DB_OFFSET, lambda value: value // 2, "doorbell area changed")
        self.rejected(c.ORNIC_REG_DB_BYTES, lambda value: value // 2, "doorbell area changed")

    def test_other_major(self):
        """ORN-GEN-2."""
        self.load()
        self.rejected(c.ORNIC_REG_VERSION, lambda value: (c.ORNIC_VERSION_MAJOR + 1) << 16, "this driver knows")

    def test_nothing_left(self):
        """A device that is too small fails three times, and the driver gives up."""
        self.load()
        self.proxy.lies.on_completion = self.page(c.ORNIC_ID_DEVICE, lambda _: {"max_recv_sge": 0})
        self.vm.run("dmesg -C; " + self.FLR, timeout=60)
        self.assertTrue(self.said("device is too small for a network interface"))
        self.assertEqual(self.vm.run("dmesg | grep -c 'device cannot be restarted'").out.strip(), "3")
        self.proxy.lies.on_completion = None
        self.vm.run(self.FLR, timeout=60)
        self.works()

    def test_extremes(self):
        """Limits of 0 and of all ones, at load and after a reset: the driver works or rejects the device."""
        ones = {1: 0xff, 2: 0xffff, 4: 0xffffffff, 8: 0xffffffffffffffff}
        names = {"ports": 1, "max_dbpages": 4, "max_qp": 4, "max_cq": 4, "max_eq": 4, "max_key": 4, "max_pd": 4, "max_raw_qp": 4,
                 "max_rules": 4, "log_max_sq": 1, "log_max_rq": 1, "log_max_cq": 1, "log_max_eq": 1, "max_sq_stride": 1,
                 "max_rq_stride": 1, "max_send_sge": 2, "max_recv_sge": 2, "stat_count": 4, "max_mod_count": 2,
                 "max_mod_period_us": 2}
        for name, size in names.items():
            for value in (0, ones[size]):
                with self.subTest(field=name, value=value):
                    self.proxy.lies = Lies(on_completion=self.page(c.ORNIC_ID_DEVICE, lambda _, n=name, v=value: {n: v}))
                    self.vm.run("insmod %s/ornic.ko; i=%s; [ ! \"$i\" ] || { ip link set $i up; ethtool -S $i; ethtool -g $i; "
                                "ip link set $i mtu 4000; }; rmmod ornic" % (UPDATES, INTERFACE), timeout=60, check=False)
                    self.vm.run("[ ! -d /sys/module/ornic ]")


class AsyncStorm(BadDevice):
    """ORN-SEC-17: the device fills event queue 0 faster than the driver reads it, while the driver waits for events there."""

    def storm(self, registers=()):
        """Make the queue short and the handling of events slow."""
        self.need_programs()
        self.load(registers=dict(registers), on_completion=self.page(c.ORNIC_ID_DEVICE, lambda _: {"log_max_eq": 5}))
        if self.vm.run("insmod /tmp/selftests/ornic_slow.ko symbol=ornic_event_queue ms=0 us=200", check=False).rc:
            self.skipTest("the kernel of %s has no kprobes" % harness.GUEST)
        self.addCleanup(self.vm.run, "rmmod ornic_slow", check=False)
        self.addCleanup(self.proxy.storm, None)
        self.proxy.storm(0, {"type": UNKNOWN})

    def test_objects(self):
        """Processes create and destroy objects."""
        self.storm()
        self.works()
        self.assertEqual(self.reasons(), [])

    def test_thread(self):
        """The thread takes the events, because it can sleep: a processor that takes them in interrupts does nothing else."""
        self.storm()
        kprobes.trace(self, self.vm, "p:lab/taken ornic_event_queue")
        self.works()
        self.proxy.storm(None)
        # task-number [processor] flags time: taken: ..., where the third flag is the context
        contexts = re.findall(r"\] ..([^ ])[^ ]+ +[0-9.]+: taken: ", kprobes.traced(self.vm))
        self.assertGreater(len(contexts), 500)
        self.assertLess(len([context for context in contexts if context in "hHZ"]), len(contexts) / 2)

    def test_reset(self):
        self.storm()
        self.vm.run(Changed.FLR, timeout=60)
        self.works()
        self.assertEqual(set(self.reasons()), {c.ORNIC_REASON_USER})

    def test_unload_and_load(self):
        self.storm()
        self.vm.run(UNLOAD, timeout=120)
        self.works(load=True)
        self.assertEqual(set(self.reasons()), {c.ORNIC_REASON_SHUTDOWN})

    def test_never_completes(self):
        """ORN-ADM-29: a command without completion causes a reset during an event storm, too."""
        self.storm({c.ORNIC_REG_CAP: timeouts(admin=10)})
        program = self.python(A_PD)
        self.proxy.lies.on_command = lambda command: command.opcode != c.ORNIC_OP_PD_CREATE
        program.write(b"\n")
        self.proxy.wait(self.reasons, "reset the device")
        self.proxy.lies.on_command = None
        self.proxy.storm(None)
        self.assertEqual(program.wait(60), 1)
        self.recovers(c.ORNIC_REASON_ADMIN_TIMEOUT)


class EventsLost(BadDevice):
    """Somebody may wait for a lost event, so the driver resets the device."""

    SMALL = {"max_qp": 64, "max_srq": 16, "max_cq": 64}

    def test_by_device(self):
        """ORN-EQ-21: the device has discarded events."""
        self.load()
        self.proxy.put_event(0, {"type": c.ORNIC_EV_COMM_EST, "number": GONE, "lost": 3})
        self.recovers(c.ORNIC_REASON_EVENTS_LOST)
        self.assertTrue(self.said("event queue 0 lost 3 events"))

    def test_by_driver(self):
        """Subscribers are too slow for the events of a device that has few objects."""
        self.need_programs()
        self.load(on_completion=self.page(c.ORNIC_ID_DEVICE, lambda _: self.SMALL))
        if self.vm.run("insmod /tmp/selftests/ornic_slow.ko symbol=ornic_ib_event ms=20", check=False).rc:
            self.skipTest("the kernel of %s has no kprobes" % harness.GUEST)
        self.addCleanup(self.vm.run, "rmmod ornic_slow", check=False)
        self.addCleanup(self.proxy.storm, None)
        self.proxy.storm(0, {"type": c.ORNIC_EV_COMM_EST, "number": GONE})
        self.proxy.wait(self.reasons, "reset the device")
        self.proxy.storm(None)
        self.recovers(c.ORNIC_REASON_EVENTS_LOST)
        self.assertTrue(self.said("subscribers too slow"))
        # DEVICE_FATAL does not wait for the events in the FIFO; few were delivered before, some after the recovery
        create = [command for command in self.proxy.commands if command.opcode == c.ORNIC_OP_EQ_CREATE and
                  command.input("ornic_eq_create_cmd")["classes"] & c.ORNIC_EQ_ASYNC][-1]
        delivered = int(self.vm.run("cat /sys/module/ornic_slow/parameters/calls").out)
        self.assertLess(delivered, 1 << create.input("ornic_eq_create_cmd")["log_entries"])

    def test_room(self):
        """Event queue 0 has room for four events of each queue pair, two of each SRQ, one of each CQ, and more."""
        most = {"max_qp": 3000, "max_srq": 1000, "max_cq": 2000}
        self.load(on_completion=self.page(c.ORNIC_ID_DEVICE, lambda _: most))
        create = [command for command in self.proxy.commands if command.opcode == c.ORNIC_OP_EQ_CREATE and
                  command.input("ornic_eq_create_cmd")["classes"] & c.ORNIC_EQ_ASYNC][-1]
        self.assertGreaterEqual(1 << create.input("ornic_eq_create_cmd")["log_entries"], 4 * 3000 + 2 * 1000 + 2000)
        self.works()


class LastEvent(BadDevice):
    """No event follows DEVICE_FATAL."""

    def test_late_event(self):
        """The interrupt handler has taken an event from queue 0, but not yet queued it for delivery, when the device dies."""
        self.need_programs()
        self.load(registers={c.ORNIC_REG_CAP: patient})
        self.vm.run("devlink health set pci/$(basename /sys/bus/pci/drivers/ornic/0000:*) reporter fw auto_recover false")
        self.trace_events()
        # Processor 0 handles the event. Processor 1 handles the interrupt of the network interface, which finds the device dead.
        # A new affinity holds from the second interrupt on.
        self.vm.run("irq=$(awk '/ornic-async@/ { sub(\":\", \"\"); print $1 }' /proc/interrupts) && echo 0 > /proc/irq/$irq/smp_affinity_list")
        self.proxy.put_event(0, {"type": c.ORNIC_EV_COMM_EST, "number": GONE})
        ring = self.proxy.eqs[0].guest
        self.proxy.wait(lambda: ring.host_index() == ring.producer, "read the event")
        if self.vm.run("insmod /tmp/selftests/ornic_slow.ko symbol=ornic_event_queue ms=3000", check=False).rc:
            self.skipTest("the kernel of %s has no kprobes" % harness.GUEST)
        self.addCleanup(self.vm.run, "rmmod ornic_slow", check=False)
        self.proxy.put_event(0, {"type": c.ORNIC_EV_PORT_ERR, "number": 1})
        time.sleep(0.5)         # a program in the VM cannot tell that the delay has begun: it may run on the delayed processor
        queue = next(number for number, eq in self.proxy.eqs.items() if eq.vector == 1)
        self.proxy.put_event(queue, {"type": c.ORNIC_EV_COMPLETION, "number": BEYOND})
        self.vm.run("until_said 'no automatic recovery'; sleep 4", timeout=60)
        self.assertEqual(self.dispatched(), [self.DEVICE_FATAL])


class Revive(BadDevice):
    """The driver retries the restoration of the device after a function level reset."""

    def test_identify_fails_once(self):
        self.load()
        self.proxy.lies.on_completion, failed = self.once(c.ORNIC_OP_IDENTIFY, c.ORNIC_ST_INTERNAL)
        self.vm.run(Changed.FLR, timeout=60)
        self.assertTrue(failed)
        self.works()


class Stale(BadDevice):
    """The driver takes an event of a destroyed CQ before another CQ can get its number."""

    A_CQ = """
from pyverbs.device import Context
from pyverbs.cq import CQ
context = Context(name="ornic0")
cq = CQ(context, 10)
print("there", flush=True)
input()
cq.close()
print("done", flush=True)
input()
"""

    def test_event_of_destroyed_cq(self):
        """The interrupt of the event is late."""
        self.load()
        program = self.python(self.A_CQ)
        create = [command for command in self.proxy.commands if command.opcode == c.ORNIC_OP_CQ_CREATE][-1]
        number, eq = create.completion["number"], create.input("ornic_cq_create_cmd")["eq"]
        vector = self.proxy.eqs[eq].vector
        self.proxy.lies.mute = {vector}
        self.proxy.put_event(eq, {"type": c.ORNIC_EV_COMPLETION, "number": number})
        ring = self.proxy.eqs[eq].guest
        self.assertNotEqual(ring.host_index(), ring.producer)
        program.write(b"\n")
        program.wait_for("done", 60)
        self.assertEqual(ring.host_index(), ring.producer)
        self.proxy.lies.mute = set()
        self.proxy.interrupt(vector)
        program.write(b"\n")
        self.works()


class StaleEvents(BadDevice):
    """A queue pair enters RESET while its events wait for delivery, and another one enters RESET by its event handler."""

    def test_used_again(self):
        """ORN-QP-22: the driver does not flush work requests that the device executes, and delivers LAST_WQE when it dies."""
        self.need_programs()
        self.load()
        self.vm.run("insmod /tmp/selftests/ornic_ktest.ko resets=ornic0")
        self.addCleanup(self.vm.run, "rmmod ornic_ktest", check=False)
        resets, delays = [command.completion["number"] for command in self.proxy.commands
                          if command.opcode == c.ORNIC_OP_QP_CREATE][-2:]
        self.proxy.put_event(0, {"type": c.ORNIC_EV_COMM_EST, "number": delays})
        self.proxy.put_event(0, {"type": c.ORNIC_EV_QP_FATAL, "number": resets, "syndrome": c.ORNIC_SYN_RING_INDEX})
        self.proxy.put_event(0, {"type": c.ORNIC_EV_LAST_WQE, "number": resets})
        ring = self.proxy.eqs[0].guest
        self.proxy.wait(lambda: ring.host_index() == ring.producer, "read the events")
        unload = self.spawn("rmmod ornic_ktest")
        self.wait_said(r"ornic_ktest: # waiting\|ornic_ktest: not ok")
        self.die()
        unload.wait()
        self.assertTrue(self.said("ornic_ktest: ok 1 - reset"), re.findall("ornic_ktest: #.*", self.vm.dmesg()))
        self.recovers(c.ORNIC_REASON_FATAL)


class Connecting(BadDevice):
    """The device dies while a consumer of the kernel waits for the answer to its connection request."""

    NOBODY = "10.88.0.77"

    def test_told(self):
        """ORN-QP-22: the consumer hears of it. NFS over RDMA (6.12) waits for that when the RDMA device is removed."""
        self.load()
        self.vm.run("modprobe -a rpcrdma nfsv4; ip neigh replace %s lladdr 02:00:00:00:00:77 dev %s" % (self.NOBODY, INTERFACE))
        self.addCleanup(self.vm.run, "umount -f -l /mnt; rmmod rpcrdma", check=False)
        self.spawn("mount -i -t nfs4 -o vers=4.2,proto=rdma,port=20049,addr={0},clientaddr=10.88.0.1 {0}:/ /mnt".format(self.NOBODY))
        self.vm.run("until rdma res show cm_id | grep 'state CONNECT.*%s'; do sleep 0.1; done" % self.NOBODY, timeout=30)
        self.die()
        self.recovers(c.ORNIC_REASON_FATAL)


class Reset(BadDevice):
    """ORN-CTL-24, ORN-CTL-25: the driver frees the device's memory only when the device is known not to access it."""

    PROBES = ("p:lab/stop ornic:ornic_ctrl_disable", "p:lab/clear pci_clear_master", "p:lab/free dma_free_attrs")

    def trace(self, program="rmmod"):
        """Trace the calls of the probed functions by a program, "" for all programs."""
        self.program = program
        kprobes.trace(self, self.vm, *self.PROBES)

    def calls(self):
        """Return the driver's steps in order."""
        lines = re.findall("^.* (?:stop|clear|free): .*$", kprobes.traced(self.vm), re.M)
        return [line.split(": ")[1].split(":")[0].strip() for line in lines if self.program in line]

    def traced(self):
        """Return the driver's steps from the moment at which it disabled the device."""
        calls = self.calls()
        return calls[calls.index("stop"):]

    def unload(self, registers, cap):
        self.load(registers={c.ORNIC_REG_CAP: cap})
        self.trace()
        self.vm.run("rmmod ornic_ib")
        self.proxy.lies.registers.update(registers)
        return self.spawn("rmmod ornic")

    def test_bus_has_failed(self):
        """ORN-CTL-24: Bus Master Enable is cleared although the registers cannot be reached."""
        self.load()
        self.vm.run("rmmod ornic_ib && ip link set %s down" % INTERFACE)     # so that no command is outstanding
        self.trace("")
        self.proxy.vanish()
        self.vm.run(Changed.FLR + " || true", timeout=60)
        self.assertEqual(self.traced()[:3], ["stop", "clear", "free"])

    def test_channel_offline(self):
        """ORN-PCI-7, ORN-CTL-24: a function whose PCI channel is offline is not accessed, and has no Bus Master Enable."""
        module = "/tmp/selftests/ornic_offline.ko"
        self.need_programs()
        self.load()
        self.vm.run("rmmod ornic_ib && ip link set %s down && insmod %s" % (INTERFACE, module))
        self.addCleanup(self.vm.run, "rmmod ornic_offline", check=False)
        self.trace()
        since = len(self.proxy.accesses)
        self.vm.run("rmmod ornic", timeout=60)
        self.assertEqual([access for access in self.proxy.accesses[since:] if access[0] != CONFIG], [])
        calls = self.calls()            # pci_disable_device() clears the bit, too, but after the memory was freed
        self.assertEqual(calls[0], "clear")
        self.assertIn("free", calls)
        self.assertFalse(self.proxy.bus_master)
        self.vm.run("rmmod ornic_offline")
        self.proxy.rules.reset()        # as a reset of the slot would
        self.works(load=True)

    def test_reset_takes_long(self):
        """ORN-CTL-24: the driver frees nothing while STATUS says that the reset is not done."""
        for bit in (c.ORNIC_STS_DRAINING, c.ORNIC_STS_READY, c.ORNIC_STS_RESETTING):
            with self.subTest(bit=bit):
                self.since = len(self.proxy.accesses)
                process = self.unload({c.ORNIC_REG_STATUS: lambda value, bit=bit: value | bit}, timeouts(reset=200))
                self.proxy.wait(lambda: len(self.seen(READ, c.ORNIC_REG_STATUS)) > 20 and self.reasons(), "wait for STATUS")
                self.assertEqual(self.traced(), ["stop"])
                self.proxy.lies.registers.pop(c.ORNIC_REG_STATUS)
                self.assertEqual(process.wait(60), 0)
                self.assertIn("free", self.traced())

    def test_reset_never_ends(self):
        """ORN-CTL-25: Bus Master Enable is cleared first."""
        process = self.unload({c.ORNIC_REG_STATUS: lambda value: value | c.ORNIC_STS_RESETTING}, timeouts(reset=5))
        self.assertEqual(process.wait(60), 0)
        self.assertEqual(self.traced()[:3], ["stop", "clear", "free"])
        self.assertFalse(self.proxy.bus_master)
        self.assertEqual(self.reasons(), [c.ORNIC_REASON_SHUTDOWN] * 2)

    def test_no_dma_after_failed_reset(self):
        """ORN-CTL-25: recovery does not set Bus Master Enable before a reset has ended."""
        self.load(registers={c.ORNIC_REG_CAP: timeouts(reset=5)})
        self.proxy.lies.registers[c.ORNIC_REG_STATUS] = lambda value: value | c.ORNIC_STS_RESETTING
        self.proxy.put_event(0, {"type": c.ORNIC_EV_DEVICE_FATAL})
        self.proxy.wait(lambda: len(self.reasons()) >= 2, "reset the device twice")
        masters = [bool(value & BUS_MASTER) for value in self.seen(CONFIG, 4)]
        self.assertEqual(masters[-1:], [False])
        self.assertNotIn(True, masters[masters.index(False):])
        self.proxy.lies.registers.pop(c.ORNIC_REG_STATUS)
        self.works()


if __name__ == "__main__":
    tap.main()
