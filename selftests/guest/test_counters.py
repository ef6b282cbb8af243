#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""`rdma statistic` and `rdma res`: counters of the port and of single queue pairs, to the byte, and the device's attributes of
objects."""
import json

import harness
from loop import Loop


class Counting(harness.GuestTest):
    ornic_only = True

    def setUp(self):
        super().setUp()
        self.link = "%s/1" % self.device
        self.addCleanup(self.a.run, "rdma statistic qp set link %s auto off" % self.link)

    def rdma(self, command):
        return self.a.run("rdma %s" % command).out

    def asked(self, command):
        return json.loads(self.rdma("-j -d " + command) or "[]")

    def port(self):
        return self.asked("statistic show link %s" % self.link)[0]

    def counters(self):
        """Return the counters that are bound to queue pairs, by id."""
        return {entry["cntn"]: entry for entry in self.asked("statistic qp show link %s" % self.link)}

    def counter_of(self, qpn):
        found = [entry for entry in self.counters().values() if qpn in (entry["lqpn"] if isinstance(entry["lqpn"], list)
                                                                       else [entry["lqpn"]])]
        self.assertEqual(len(found), 1, "counters of queue pair %d" % qpn)
        return found[0]

    def assertCounts(self, entry, **wanted):
        self.assertEqual({name: entry[name] for name in wanted}, wanted)


class Counters(Counting):
    def test_port(self):
        """The port's counters count each operation once, with its bytes."""
        before = self.port()
        loop = Loop(self, self.a)
        loop.do("write 1000 3")
        loop.do("read 5000 2")
        loop.do("send 10 4")
        after = self.port()
        moved = {name: after[name] - before[name] for name in after if isinstance(after[name], int)}
        self.assertCounts(moved, tx_write=3, rx_write=3, tx_read=2, rx_read=2, tx_send=4, rx_send=4,
                          rdma_tx_bytes=3000 + 10000 + 40, rdma_rx_bytes=3000 + 10000 + 40, rdma_copied_bytes=3000 + 10000 + 40,
                          retransmits=0, duplicates=0, flushes=0)

    def test_bind_and_unbind(self):
        loop = Loop(self, self.a)
        a, b = loop.qpns
        loop.do("write 100 1")                          # traffic before the binding, counted for the port alone
        before = self.port()
        self.rdma("statistic qp bind link %s lqpn %d" % (self.link, a))
        self.rdma("statistic qp bind link %s lqpn %d" % (self.link, b))
        loop.do("write 2000 3")
        loop.do("read 7 1")
        first, second = self.counter_of(a), self.counter_of(b)
        self.assertCounts(first, tx_write=3, tx_read=1, rx_write=0, rdma_tx_bytes=6000, rdma_rx_bytes=7)
        self.assertCounts(second, tx_write=0, rx_write=3, rx_read=1, rdma_tx_bytes=7, rdma_rx_bytes=6000)
        self.assertNotIn("tx_bytes", first, "a counter that queue pairs do not have")
        self.assertEqual(self.port()["rdma_tx_bytes"] - before["rdma_tx_bytes"], 6007, "the port counts everything once")

        self.rdma("statistic qp unbind link %s cntn %d lqpn %d" % (self.link, first["cntn"], a))
        loop.do("write 2000 1")
        self.assertNotIn(first["cntn"], self.counters())
        self.assertCounts(self.counter_of(b), rx_write=4)
        after = self.port()
        self.assertEqual(after["rdma_tx_bytes"] - before["rdma_tx_bytes"], 8007)
        self.assertEqual(after["tx_write"] - before["tx_write"], 4)
        loop.end()
        self.assertEqual(self.counters(), {})
        self.assertEqual(self.port()["tx_write"] - before["tx_write"], 4, "a counter that is gone is not forgotten")

    def test_two_in_one(self):
        """A second queue pair joins the counter of the first."""
        loop = Loop(self, self.a)
        a, b = loop.qpns
        self.rdma("statistic qp bind link %s lqpn %d" % (self.link, a))
        number = self.counter_of(a)["cntn"]
        self.rdma("statistic qp bind link %s lqpn %d cntn %d" % (self.link, b, number))
        loop.do("send 300 2")
        self.assertCounts(self.counter_of(b), cntn=number, tx_send=2, rx_send=2, rdma_tx_bytes=600, rdma_rx_bytes=600)

    def test_auto_by_type(self):
        before = self.port()
        self.rdma("statistic qp set link %s auto type on" % self.link)
        loop = Loop(self, self.a)
        loop.do("write 123 5")
        counters = self.counters()
        self.assertEqual(len(counters), 1)
        self.assertCounts(self.counter_of(loop.qpns[0]), tx_write=5, rx_write=5, rdma_tx_bytes=615)
        refused = self.a.run("rdma statistic qp bind link %s lqpn %d" % (self.link, loop.qpns[0]), check=False)
        self.assertNotEqual(refused.rc, 0)
        loop.end()
        self.assertEqual(self.counters(), {})
        self.assertEqual(self.port()["rdma_tx_bytes"] - before["rdma_tx_bytes"], 615)

    def test_auto_by_process(self):
        self.rdma("statistic qp set link %s auto pid on" % self.link)
        loops = [Loop(self, self.a), Loop(self, self.a)]
        for n, loop in enumerate(loops):
            loop.do("write 10 %d" % (n + 1))
        self.assertEqual(sorted(entry["tx_write"] for entry in self.counters().values()), [1, 2])

    def test_driver_comes_again(self):
        """Values that counters had before the driver was reloaded are not subtracted twice from the port's values."""
        loop = Loop(self, self.a)
        self.rdma("statistic qp bind link %s lqpn %d" % (self.link, loop.qpns[0]))
        loop.do("write 1000 1")
        loop.end()
        before = self.port()["tx_write"]
        self.a.run("rmmod ornic_ib && insmod /lib/modules/$(uname -r)/updates/ornic_ib.ko")
        self.wait_usable()
        self.assertEqual(self.port()["tx_write"], before)

    def test_hw_counters_in_sysfs(self):
        folder = "/sys/class/infiniband/%s/ports/1/hw_counters" % self.device
        before = int(self.a.run("cat %s/tx_write" % folder).out)
        Loop(self, self.a).do("write 1 2")
        self.a.run("sleep 0.1")                         # ib_core reads again after 10 ms
        self.assertEqual(int(self.a.run("cat %s/tx_write" % folder).out) - before, 2)


class Resources(Counting):
    def found(self, what, **key):
        entries = [entry for entry in self.asked("-dd res show %s" % what)
                   if all(entry.get(name) == value for name, value in key.items())]
        self.assertEqual(len(entries), 1, "%s %s" % (what, key))
        return entries[0]

    def test_queue_pair(self):
        loop = Loop(self, self.a)
        loop.do("write 5000 3")
        loop.do("send 1 2")
        qp = self.found("qp", lqpn=loop.qpns[0])
        self.assertCounts(qp, drv_handle=loop.qpns[0], drv_device_state=3, drv_sq_index=5, drv_sq_done=5, drv_rq_index=0,
                          drv_next_psn=17)              # 5 packets for each write at an MTU of 1024
        peer = self.found("qp", lqpn=loop.qpns[1])
        self.assertCounts(peer, drv_rq_index=2, drv_msn=5, drv_expected_psn=17)
        loop.do("modify 6")
        self.assertCounts(self.found("qp", lqpn=loop.qpns[0]), drv_device_state=6, state="ERR")

    def test_completion_queue(self):
        loop = Loop(self, self.a)
        loop.do("write 1 3")
        pid = self.found("qp", lqpn=loop.qpns[0])["pid"]
        cq = self.found("cq", pid=pid)
        self.assertCounts(cq, drv_producer=3, drv_entries=128, drv_error=0)

    def test_memory_region(self):
        loop = Loop(self, self.a)
        loop.do("write 1 3")
        pid = self.found("qp", lqpn=loop.qpns[0])["pid"]
        mr = self.found("mr", pid=pid)
        self.assertCounts(mr, mrlen=65536, drv_kind=0, drv_valid=1)
        self.assertGreater(mr["drv_uses"], 0)

    def test_shared_receive_queue(self):
        server = self.spawn(self.a, "ibv_srq_pingpong -d %s -g %d -r 100" % (self.device, self.p.gid_index(self.a)), 60)
        self.a.wait_listen(18515, 30)
        srq = self.found("srq", comm="ibv_srq_pingpon")
        self.assertCounts(srq, drv_entries=128, drv_producer=100, drv_consumer=0, drv_error=0)
        entry = [entry for entry in self.asked("res show srq -r")][0]
        self.assertEqual(len(entry["data"]), 80)
        server.kill()

    def test_raw(self):
        """The raw attributes of the device: sizes are those of the interface."""
        loop = Loop(self, self.a)
        pid = self.found("qp", lqpn=loop.qpns[0])["pid"]
        for what, size in (("qp", 384), ("cq", 80), ("mr", 112)):
            entries = self.asked("res show %s -r" % what)
            self.assertTrue(entries, what)
            for entry in entries:
                self.assertEqual(len(entry["data"]), size, what)
        self.assertTrue(pid)


if __name__ == "__main__":
    harness.main()
