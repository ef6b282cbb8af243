#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Many threads and processes at once, in two VMs.

Threads share queues, and each message is accounted for (prog/verbs_storm). Meanwhile others create and destroy objects of every
kind (prog/verbs_storm_churn), processes are killed, tools query all attributes, the interface goes down and up, and the device
goes away. A seed selects the operations; failures print it, and ORNIC_TEST_SEED sets it. Work is counted, not timed; a kernel
that checks itself does a part of it.
"""
import os
import re

import harness
import kprobes
import programs

SEED = int(os.environ.get("ORNIC_TEST_SEED", "1"))
WORK = "-s %d -n %d" % (SEED, harness.SLOW)
SHARED = "order one_qp one_cq one_srq one_channel".split()
CHURN = "/tmp/selftests/verbs_storm_churn %s %s %%s" % (WORK, harness.DEVICE)
ROUNDS = 120 // harness.SLOW                # operations of each thread that creates and destroys during traffic
PATIENCE = 300
SLOT = "0000:01:00.0"
DRIVER = "/sys/bus/pci/drivers/ornic"
UPDATES = "/lib/modules/$(uname -r)/updates"
STOP = "/tmp/storm.stop"
GATE = "/tmp/storm.gate"
LOOK = """rdma link; rdma dev show -d; rdma res; rdma res show qp -dd; rdma res show cq -dd; rdma res show mr -dd;
    rdma res show srq -dd; rdma res show ctx -dd; rdma res show pd -dd; rdma statistic; rdma statistic qp show;
    ip -s -s link show dev {netdev}; ethtool -S {netdev}; devlink dev info;
    cat /sys/class/infiniband/{device}/ports/1/hw_counters/* /sys/class/infiniband/{device}/ports/1/gids/*
        /sys/class/infiniband/{device}/ports/1/state /sys/class/infiniband/{device}/ports/1/rate""".replace("\n", " ")


class Storm(programs.ProgramTest):
    ornic_only = True
    program = "verbs_storm"
    port = 7475

    def forever(self, vm, commands, first="true"):
        """Start a loop that runs commands until the test stops it and ignores their status; return the process."""
        vm.run("rm -f %s %s" % (STOP, GATE))
        process = self.spawn(vm, first + "; n=0; while [ ! -e %s ]; do { %s; } >/dev/null 2>&1; n=$((n + 1)); done; echo rounds $n"
                             % (STOP, commands.format(device=self.device, netdev=self.p.netdev)), PATIENCE)
        return process

    def stop(self, vm, process):
        """Stop such a loop, which must have finished at least one round."""
        vm.run("touch %s" % STOP)
        process.wait(PATIENCE)
        self.assertNotIn("rounds 0\n", process.text())
        self.assertIn("rounds ", process.text())

    def addresses(self):
        """Restore the addresses: the interface loses its IPv6 address when it goes down."""
        self.a.run("ip link set {0} up; ip addr replace {1}/24 dev {0}; ip -6 addr replace {2}/64 dev {0} nodad; "
                   "until usable {3}; do sleep 0.05; done"
                   .format(self.p.netdev, self.p.address(self.a), self.p.address(self.a, 6), self.device), timeout=30)

    def local(self, test):
        said = self.a.run(CHURN % test, timeout=PATIENCE, check=False)
        self.judge(said.out + said.err, test)


class Shared(Storm):
    """Queues that threads share; with -c, objects come and go in the same processes."""


programs.points(Shared, SHARED, threads=WORK)


class Polled(Storm):
    """The queues of the interface are replaced while another processor polls them."""

    SLOW = "insmod /tmp/selftests/ornic_slow.ko symbol=ornic_cq_arm ms=%d"
    DELAY = 10                              # milliseconds: longer than the destruction of the queues
    PROBES = ("p:lab/arm ornic_cq_arm", "r:lab/armed ornic_cq_arm", "p:lab/destroy ornic_queues_destroy")

    def setUp(self):
        super().setUp()
        self.assertGreater(int(self.a.run("nproc").out), 1, "another processor must be able to poll")
        self.addCleanup(self.addresses)
        for vm, peer in ((self.a, self.b), (self.b, self.a)):
            self.spawn(vm, "exec ping -q -f -s 1000 %s > /dev/null" % self.p.address(peer), PATIENCE)
        self.a.run(self.SLOW % self.DELAY)
        self.addCleanup(self.a.run, "rmmod ornic_slow", check=False)
        kprobes.trace(self, self.a, *self.PROBES)

    def during_poll(self, commands, rounds=10):
        """Destroy queues again and again. No call that uses them may still run then: memory of a freed ring shows no trace of that
        on a stock kernel."""
        self.a.run("for n in $(seq %d); do %s || exit; done" % (rounds, commands.format(dev=self.p.netdev)), timeout=PATIENCE)
        arming, armed, destroyed = set(), 0, 0
        for cpu, event in re.findall(r"\[(\d+)\] .*: (arm|armed|destroy): \(", kprobes.traced(self.a)):
            if event == "arm":
                arming.add(cpu)
            elif event == "armed":
                arming.discard(cpu)
                armed += 1
            else:
                self.assertFalse(arming, "queues are destroyed while processor %s arms them" % " ".join(arming))
                destroyed += 1
        self.assertGreater(armed, rounds)
        self.assertGreaterEqual(destroyed, rounds)

    def test_mtu(self):
        """Each MTU needs another size of receive buffers, so the queues are replaced each time."""
        self.during_poll("ip link set {dev} mtu 4000 && ip link set {dev} mtu 1500")

    def test_down_and_up(self):
        self.during_poll("ip link set {dev} down && ip link set {dev} up && sleep 0.2")


class Thousand(Storm):
    program = "verbs_storm_many"
    port = 7476

    def test_between(self):
        self.one_point("between", "", "thousand", timeout=PATIENCE)

    def test_within(self):
        self.one_point("within", "", "thousand", timeout=PATIENCE)

    def test_limits(self):
        self.local("limits")


class Churn(Storm):
    """Objects of every kind are created and destroyed at random."""

    def churned(self, place, plan):
        self.one_point(place, "%s -c %d" % (WORK, ROUNDS), plan, timeout=PATIENCE)

    def test_traffic_between(self):
        self.churned("between", "one_srq")

    def test_traffic_within(self):
        self.churned("within", "one_channel")

    def test_all_kinds(self):
        """In both VMs at once."""
        other = self.spawn(self.b, CHURN % "all", PATIENCE)
        self.local("all")
        self.assertEqual(other.wait(PATIENCE), 0, other.text())

    def test_regions_change(self):
        """Under traffic, in a protection domain that threads share."""
        self.local("rereg")

    def test_killed(self):
        """Traffic of other processes stays intact meanwhile."""
        process = self.spawn(self.a, CHURN % "killed", PATIENCE)
        self.one_point("between", WORK, "one_srq", timeout=PATIENCE)
        self.assertEqual(process.wait(PATIENCE), 0, process.text())
        self.judge(process.text(), "killed")

    def test_watched(self):
        """Tools show objects and counters while these are created and destroyed."""
        looker = self.forever(self.a, LOOK)
        self.churned("within", "one_cq")
        self.stop(self.a, looker)

    def test_interface(self):
        """The interface goes down and up and changes its MTU; messages are retransmitted, connections survive.

        The first messages are sent while it is down.
        """
        connected = "until [ -e %s ] || [ $(rdma res show qp | grep -c 'type RC state RTS') -ge 8 ]; do sleep 0.05; done" % STOP
        self.addCleanup(self.addresses)
        shaker = self.forever(self.a, "ip link set {netdev} mtu 1400; ip link set {netdev} down; touch %s; "
                              "ip link set {netdev} up; ip link set {netdev} mtu 1500; sleep %.1f" % (GATE, 0.5 * harness.SLOW), connected)
        self.one_point("between", WORK + " -m 3000 -g " + GATE, "one_cq", timeout=PATIENCE)
        self.stop(self.a, shaker)


class Unplugged(Storm):
    """The device goes away under a storm: processes get an event and end; the device comes back."""

    def gone(self, take, bring):
        server = self.spawn(self.b, "/tmp/selftests/verbs_storm -d %s" % self.device, PATIENCE)
        self.b.wait_listen(self.port, 30)
        churner = self.spawn(self.a, CHURN % "unplugged", PATIENCE)
        traffic = self.spawn(self.a, "/tmp/selftests/verbs_storm -u -d %s -s %d -m 100000 vm%d one_cq" % (
            self.device, SEED, self.b.number), PATIENCE)
        self.a.run("until [ $(rdma res show qp | grep -Ec 'state RTS .*comm verbs_storm *$') -ge 8 ]; do sleep 0.05; done", timeout=60)
        self.a.run(take, timeout=120)
        self.assertEqual(churner.wait(PATIENCE), 0, churner.text())
        traffic.wait(PATIENCE)
        server.kill()
        self.a.run(bring, timeout=120)
        self.p.netdev = self.a.run("until rdma link show %s/1; do sleep 0.05; done" % self.device, timeout=60) \
            .out.split("netdev")[1].split()[0]
        self.addresses()
        self.assertRegex(traffic.text(), "(?m)^(not )?ok 1 - one_cq$")
        self.assertNotIn("# client:", traffic.text())       # the other end reports that it has lost its peer
        self.one_point("between", WORK, "order", timeout=PATIENCE)

    def test_unbind_and_reload(self):
        self.gone("echo {0} > {1}/unbind; rmmod ornic_ib ornic".format(SLOT, DRIVER),
                  "insmod {0}/ornic.ko && insmod {0}/ornic_ib.ko".format(UPDATES))

    def test_removed(self):
        self.gone("echo 1 > /sys/bus/pci/devices/%s/remove" % SLOT, "echo 1 > /sys/bus/pci/rescan")


if __name__ == "__main__":
    harness.main()
