#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Two senders into one rate-limited link: they share it with congestion control, and lose packets without.

Both devices of VM 0 write to VM 1, whose link is rate-limited. Together they have more data in flight than the link's queue
holds. The second one begins when the first one has received its notifications, because congestion control does not prevent
losses of a simultaneous start.
"""
import time

import badnet
import harness

from checker import judge       # pylint: disable=wrong-import-order

harness.OWN_LAB = {"devices": "2,1", "hosts": "one", "ornicd_args": badnet.ORNICD_ARGS}

PORTS = 18515, 18516
BESIDE = "10.77.0.2"            # VM 1 by the virtio link, so that the programs' control messages do not wait in the queue
LINK = {"rate": "200M", "queue": "250000"}
BEGUN = 4 << 20                 # bytes after which a writer follows its notifications
SECONDS = 12 * harness.SLOW     # run time of a writer: longer than the start of the other one and all measurements
SETTLE = 2                      # far more than DCQCN needs to find the senders' rates
WATCH = 3
FAIR = 0.2
WRITE = "ib_write_bw -d {dev} -x {gid} -F -p {port} -s 65536 -m 1024 {more}"
# Two interfaces on one network: by default Linux answers ARP on either one for the address of the other one, too.
SECOND = """echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore; echo 2 > /proc/sys/net/ipv4/conf/all/arp_announce
dev=$(rdma link show {dev}/1 | sed 's/.*netdev \\([^ ]*\\).*/\\1/'); ip link set $dev up; ip address add {addr}/24 dev $dev
cd /sys/class/infiniband/{dev}/ports/1/gids; until grep -l ffff:{word} *; do sleep 0.05; done"""


class Congestion(badnet.Captured):
    ornic_only = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.senders = [each["name"] for each in cls.control.call("device.list")][:2]
        cls.receiver = cls.control.call("device.list")[2]["name"]
        second = cls.a.run(SECOND.format(dev="ornic1", addr="10.88.0.11", word="0a58:000b"), timeout=30)
        cls.b.run("ip neigh flush all")
        cls.gids = [cls.p.gid_index(cls.a), int(second.out.split()[-1])]

    def setUp(self):
        super().setUp()
        self.addCleanup(self.control.call, "link.set", port=self.receiver, rate="off")
        self.addCleanup(self.control.call, "cc.set", spec="on")

    def link(self):
        return next(each for each in self.control.call("link.list") if each["port"] == self.receiver)

    def sent(self):
        """Return the bytes of both senders."""
        return [self.control.call("counters", device=name)["rdma_tx_bytes"] for name in self.senders]

    def start(self, i, more):
        """Start writer number i with its peer."""
        port = PORTS[i]
        server = self.spawn(self.b, WRITE.format(dev=self.device, gid=self.p.gid_index(self.b), port=port, more=more), 60)
        self.b.wait_listen(port, 30)
        client = WRITE.format(dev="ornic%d" % i, gid=self.gids[i], port=port, more=more)
        return [server, self.spawn(self.a, "%s %s" % (client, BESIDE), 60)]

    def begin(self, i):
        """Start writer number i and wait until it has sent for some time."""
        idle = self.sent()[i]
        processes = self.start(i, "-D %d" % SECONDS)
        end = time.monotonic() + 60 * harness.SLOW
        while self.sent()[i] < idle + BEGUN:
            self.assertLess(time.monotonic(), end, "nothing is sent: " + processes[1].text())
            time.sleep(0.05)
        return processes

    def end(self, processes):
        for process in processes:
            self.assertEqual(process.wait(60 * harness.SLOW), 0, process.text())

    def share(self):
        """Run both writers; return the first one's share of all bytes, and the link's counters."""
        self.control.call("link.set", port=self.receiver, rate="off")
        self.control.call("link.set", port=self.receiver, **LINK)
        running = self.begin(0) + self.begin(1)
        time.sleep(SETTLE)
        before = self.sent()
        time.sleep(WATCH)
        first, second = (now - then for now, then in zip(self.sent(), before))
        link = self.link()
        self.assertEqual([process.poll() for process in running], [None] * 4, "a writer ended too early to be watched")
        self.end(running)
        print("# %d and %d bytes in %d s; %d frames, %d marked, %d dropped" %
              (first, second, WATCH, link["frames"], link["marked"], link["dropped"]))
        return first / (first + second), link

    def test_share(self):
        """unit/test_congestion shows with a simulated clock that nothing is lost at all. Here a daemon that lacks the processor
        for long lets both senders return to full rate."""
        part, controlled = self.share()
        self.assertLess(abs(part * 2 - 1), FAIR)
        self.assertGreater(controlled["marked"], 0)
        self.control.call("cc.set", spec="off")
        _, wild = self.share()
        self.assertEqual(wild["marked"], 0)
        self.assertGreater(wild["dropped"], 2 * controlled["dropped"])

    def test_notifications(self):
        """CNPs answer marks, at most as often as the parameter allows, and no other rule is broken."""
        self.control.call("link.set", port=self.receiver, rate="50M", queue=LINK["queue"])
        spacing = self.control.call("cc.show")["params"]["np_min_time_between_cnps"] * 1000
        with self.captured(judge.Options(timeout_ns=4096 << 18, cnp_ns=spacing)) as counts:
            self.end(self.start(0, "-n 100 -u 18"))
        self.assertGreater(counts.get("CNPs", 0), 10, counts)


if __name__ == "__main__":
    harness.main()
