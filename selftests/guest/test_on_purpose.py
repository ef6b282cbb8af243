#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Device fault injection, from the administrator's side (ornicctl) and from the side of the guest's driver and programs.

Flapping links, completions and queue pairs in error, commands that fail or are never answered, a device that dies; the recipes
of the guide are among them. test_badnet covers bad networks.
"""
import atexit
import json
import os
import re
import subprocess
import tempfile
import time

import badnet
import harness
from loop import Loop

ORNICCTL = os.path.join(harness.BUILT, "ornicctl")
FIRST_RULE = "admin opcode=SRQ_CREATE nth=1 fail=LIMIT"
with tempfile.NamedTemporaryFile("w", prefix="ornic-", suffix=".rules", delete=False) as RULES:
    RULES.write("# of a file\n\n%s     # the first SRQ of all\n" % FIRST_RULE)
atexit.register(os.remove, RULES.name)
harness.OWN_LAB = {"ornicd_args": badnet.ORNICD_ARGS + ["--faults", RULES.name]}

UPDATES = "/lib/modules/$(uname -r)/updates"
RELOAD = "rmmod ornic_ib && rmmod ornic && insmod %s/ornic.ko && insmod %s/ornic_ib.ko" % (UPDATES, UPDATES)
SYNDROME = "0x80000001"         # of injected faults
FLUSHED, REM_OP, RETRY_EXC = 5, 11, 12
ERR = "state 6 "                # of a queue pair
STATUSES = dict(LOC_LEN_ERR=1, LOC_QP_OP_ERR=2, LOC_PROT_ERR=4, WR_FLUSH_ERR=5, MW_BIND_ERR=6, BAD_RESP_ERR=7, LOC_ACCESS_ERR=8,
                REM_INV_REQ_ERR=9, REM_ACCESS_ERR=10, REM_OP_ERR=11, RETRY_EXC_ERR=12, RNR_RETRY_EXC_ERR=13, GENERAL_ERR=21)
ADMIN_TIMEOUT, FATAL = 3, 5     # reasons of resets


class OnPurpose(harness.GuestTest):
    ornic_only = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.name = cls.devices()[0]["name"]     # name of the device of VM 0

    @classmethod
    def ornicctl(cls, *args, check=True):
        return subprocess.run([ORNICCTL, "--control", cls.p.lab.state.path("control0"), *args], stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=60, check=check)

    @classmethod
    def devices(cls):
        return json.loads(cls.ornicctl("--json", "device", "list").stdout)

    def rules(self):
        return {rule["id"]: rule for rule in json.loads(self.ornicctl("--json", "fault", "list").stdout)}

    def fault(self, rule):
        """Add a rule for the device of VM 0 until the end of the test; return its number."""
        words = rule.split()
        added = self.ornicctl("--json", "fault", "add", words[0], "device=" + self.name, *words[1:])
        number = json.loads(added.stdout)["id"]
        self.addCleanup(self.ornicctl, "fault", "del", str(number), check=False)
        return number

    def acted(self, number):
        return self.rules()[number]["acted"]

    def assertActed(self, number, times=1):
        self.assertEqual(self.acted(number), times, self.rules()[number])

    def pings(self):
        self.a.run("ping -n -c 1 -W 10 " + self.p.address(self.b), timeout=30)


class File(OnPurpose):
    """A rule file of --faults."""

    def test_first_command_fails(self):
        number = min(self.rules())
        self.assertEqual((number, self.rules()[number]["rule"]), (1, FIRST_RULE))
        loop = Loop(self, self.a)
        self.assertIn("Errno: 12,", loop.ask("make srq"))
        self.assertActed(number)
        self.assertTrue(self.rules()[number]["spent"])
        loop.do("make srq")
        self.assertRegex(self.ornicctl("fault", "list").stdout, "(?m)^ *1 +2 +1 +0 +spent +" + re.escape(FIRST_RULE))


class Flap(OnPurpose):
    """The link of a device goes down and comes back by itself."""

    def setUp(self):
        super().setUp()
        self.addCleanup(self.wait_port, "ACTIVE")

    def port(self):
        """Return the state by the tools of the guest: rdma, ibv_devinfo, the interface's carrier, ethtool."""
        said = self.a.run("rdma link show {d}/1; ibv_devinfo -d {d}; cat /sys/class/net/{n}/carrier; ethtool {n} | grep Link"
                          .format(d=self.device, n=self.p.netdev)).out
        return re.search(r"state (\w+)(?s:.*)state:\s+(\w+) (?s:.*)^([01])$(?s:.*)detected: (\w+)", said, re.M).groups()

    def test_down_and_up(self):
        """All tools show the state, and processes get events; deleting the rule brings the link up early."""
        loop = Loop(self, self.a)
        number = self.fault("flap for=60min")
        self.assertEqual(loop.do("event"), "done IBV_EVENT_PORT_ERR")
        self.wait_port("DOWN")
        self.assertEqual(self.port(), ("DOWN", "PORT_DOWN", "0", "no"))
        self.assertNotEqual(self.a.run("ping -n -c 1 -W 1 " + self.p.address(self.b), check=False).rc, 0)
        self.assertActed(number)
        self.ornicctl("fault", "del", str(number))
        self.assertEqual(loop.do("event"), "done IBV_EVENT_PORT_ACTIVE")
        self.wait_port("ACTIVE")
        self.assertEqual(self.port(), ("ACTIVE", "PORT_ACTIVE", "1", "yes"))
        self.pings()
        loop.do("write 100 1")

    def test_short(self):
        """A connection whose retries last longer than the flap survives; a passing packet starts the flap."""
        loop = Loop(self, self.a)
        number = self.fault("flap qp=%d opcode=WRITE_ONLY nth=2 for=200ms" % loop.qpns[0])
        loop.do("write 100 1")
        self.assertActed(number, 0)
        start = time.monotonic()
        loop.do("write 100 1")
        self.assertGreater(time.monotonic() - start, 0.2)
        self.assertActed(number)
        loop.do("write 100 5")

    def test_long(self):
        """With a shorter retry time the work request ends in RETRY_EXC_ERR; new connections work."""
        loop = Loop(self, self.a)
        number = self.fault("flap for=3s")
        self.wait_port("DOWN")
        self.assertEqual(loop.ask("write 100 1"), "failed status %d" % RETRY_EXC)
        self.wait_port("ACTIVE")
        self.assertActed(number)
        Loop(self, self.a).do("write 100 1")
        self.pings()

    def test_again(self):
        """Two flaps, two seconds apart, as the rule says."""
        loop = Loop(self, self.a)
        number = self.fault("flap for=1s in=500ms again=2s count=2")
        for _ in range(2):
            for event in ("PORT_ERR", "PORT_ACTIVE"):
                self.assertEqual(loop.do("event"), "done IBV_EVENT_" + event)
        self.assertActed(number, 2)
        self.assertTrue(self.rules()[number]["spent"])


class Errors(OnPurpose):
    """Completions with errors and queue pairs that enter ERR, one by one; other queue pairs continue."""

    def setUp(self):
        super().setUp()
        self.loop, self.other = Loop(self, self.a), Loop(self, self.a)

    def check_others(self):
        self.other.do("write 100 5")
        self.assertNotIn(ERR, self.other.do("query"))
        Loop(self, self.a).do("send 100 2")

    def test_send_status(self):
        number = self.fault("cqe qp=%d queue=send nth=2 status=REM_OP_ERR" % self.loop.qpns[0])
        self.loop.do("write 100 1")
        self.assertEqual(self.loop.ask("write 100 1"), "failed status %d" % REM_OP)
        self.assertIn(ERR, self.loop.do("query"))
        self.assertEqual(self.loop.ask("write 100 1"), "failed status %d" % FLUSHED)
        self.assertActed(number)
        self.check_others()

    def test_each_status(self):
        """Every status that a rule can have is the verbs' status of that name."""
        for name, status in STATUSES.items():
            number = self.fault("cqe qp=%d status=%s" % (self.loop.qpns[0], name))
            self.assertEqual(self.loop.ask("write 100 1"), "failed status %d" % status, name)
            self.assertActed(number)
            self.ornicctl("fault", "del", str(number))
            self.loop.do("again")
            self.loop.do("write 100 1")
        self.check_others()

    def test_receive_status(self):
        """Both ends get the error."""
        number = self.fault("cqe qp=%d queue=recv nth=1 status=LOC_PROT_ERR" % self.loop.qpns[1])
        self.assertEqual(self.loop.ask("send 100 1"), "failed status %d" % STATUSES["LOC_PROT_ERR"])
        self.assertIn(ERR, self.loop.do("query"))
        self.assertActed(number)
        self.check_others()

    def test_queue_pair(self):
        """The process gets QP_FATAL, its work requests are flushed; rdma shows the reason."""
        number = self.fault("qp-error qp=%d" % self.loop.qpns[0])
        self.assertEqual(self.loop.do("event"), "done IBV_EVENT_QP_FATAL")
        self.assertIn(ERR, self.loop.do("query"))
        self.assertEqual(self.loop.ask("write 100 1"), "failed status %d" % FLUSHED)
        shown = self.a.run("rdma -dd res show qp link %s lqpn %d" % (self.device, self.loop.qpns[0])).out
        self.assertIn(SYNDROME, shown)
        self.assertActed(number)
        self.check_others()

    def test_queue_pair_of_packet(self):
        """The queue pair that receives the fourth packet fails; its peer gets no answer."""
        number = self.fault("qp-error dir=rx dqp=%d nth=4" % self.loop.qpns[1])
        self.loop.do("write 100 3")
        self.assertActed(number, 0)
        self.assertEqual(self.loop.ask("write 100 1"), "failed status %d" % RETRY_EXC)
        self.assertEqual(self.loop.do("event"), "done IBV_EVENT_QP_FATAL")
        self.assertActed(number)
        self.check_others()


class Commands(OnPurpose):
    """Failing commands of the driver: the system call returns the error, and no part of the new object remains."""

    def objects(self):
        """Return the objects, as counted by the kernels and by the daemon."""
        return self.p.resources(), self.devices()

    def fails(self, rule, kind, errno):
        """Check that a process can create such an object before and after the fault, and that the second attempt fails."""
        loop = Loop(self, self.a)
        before = self.objects()
        number = self.fault("admin nth=2 " + rule)
        loop.do("make " + kind)
        self.assertActed(number, 0)
        self.assertIn("Errno: %d," % errno, loop.ask("make " + kind))
        self.assertActed(number)
        loop.do("query")                        # pyverbs destroys its remaining objects
        self.assertEqual(self.objects(), before)
        loop.do("make " + kind)
        loop.do("write 100 2")
        self.assertActed(number)

    def test_qp_create(self):
        self.fails("opcode=QP_CREATE fail=NO_RESOURCE", "qp", 12)

    def test_key_create(self):
        self.fails("opcode=KEY_C* fail=PERMISSION", "mr", 1)

    def test_modify(self):
        """A queue pair whose modification failed keeps its attributes."""
        loop = Loop(self, self.a)
        number = self.fault("admin opcode=QP_MODIFY nth=1 fail=BAD_STATE")
        self.assertIn("Errno: 22,", loop.ask("modify 6"))
        self.assertActed(number)
        loop.do("write 100 1")


class Death(OnPurpose):
    """The device dies, or seems to; the driver resets it, and it works again. Processes that had it open must restart."""

    def setUp(self):
        super().setUp()
        self.a.run(RELOAD, timeout=60)          # clears the driver's count of resets
        self.addresses()
        self.a.run("dmesg -C")
        self.loop = Loop(self, self.a)

    def said(self):
        return self.a.run("dmesg").out

    def wait_said(self, text):
        self.a.run("until_said '%s'" % text, timeout=60)

    def recovers(self, reason):
        """Check that the process gets an event and can end, that the interface keeps its address, and that new processes and
        the other VM work."""
        self.assertEqual(self.loop.do("event"), "done IBV_EVENT_DEVICE_FATAL")
        self.wait_said("device recovered")
        self.assertIn("device is dead, reset reason %d" % reason, self.said())
        self.assertIn("Errno: 5,", self.loop.ask("make mr"))
        self.loop.process.kill()
        self.assertIn(self.p.address(self.a) + "/24", self.a.run("ip addr show dev " + self.p.netdev).out)
        self.works()

    def works(self):
        self.wait_usable()
        Loop(self, self.a).do("write 100 2")
        self.pings()
        server, client = ["ibv_rc_pingpong -d %s -g %d -n 20 -c" % (self.device, self.p.gid_index(vm)) for vm in (self.b, self.a)]
        self.exchange("between", server, client + " {addr}", 18515)

    def test_command_never_answered(self):
        """The driver gives up on the command: the system call fails, and the device is reset."""
        asker = Loop(self, self.a)
        number = self.fault("admin opcode=KEY_CREATE nth=2 timeout")
        asker.do("make mr")
        self.assertIn("Errno: 5,", asker.ask("make mr"))
        asker.process.kill()
        self.wait_said("command 0x0401 not answered within 10000 ms")
        self.assertActed(number)
        self.recovers(ADMIN_TIMEOUT)
        self.assertActed(number)

    def test_fatal(self):
        number = self.fault("fatal")
        self.wait_said("device failed, syndrome " + SYNDROME)
        self.assertActed(number)
        self.recovers(FATAL)
        self.assertTrue(self.rules()[number]["spent"])

    def test_fatal_of_packet(self):
        """In the middle of a READ, at its third packet."""
        reader = Loop(self, self.a)
        number = self.fault("fatal dir=rx opcode=READ_REQUEST nth=3")
        reader.do("read 5000 2")
        self.assertActed(number, 0)
        reader.process.write(b"read 5000 1\n")
        self.recovers(FATAL)
        self.assertActed(number)
        reader.process.kill()

    def test_too_often(self):
        """The driver gives up on a device that dies repeatedly, and its message says how to recover it; that works."""
        self.loop.process.kill()
        for _ in range(harness.QUICK_RESETS):
            self.a.run("dmesg -C")
            self.fault("fatal")
            self.wait_said("device recovered")
        self.fault("fatal")
        self.wait_said("device failed %u times in short succession, no recovery: reload the driver" % harness.QUICK_RESETS)
        self.assertNotIn(self.device, self.a.run("rdma link").out)
        refused = self.ornicctl("fault", "add", "fatal", "device=" + self.name, check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("is not in use: no driver has enabled it", refused.stderr)
        self.a.run(RELOAD, timeout=60)
        self.addresses()
        self.works()


if __name__ == "__main__":
    harness.main()
