#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The device and its Ethernet interface, as administrators see them."""
import json
import os
import re

import harness
import kprobes

IPERF = 5201


class Netdev(harness.GuestTest):
    ornic_only = True

    def setUp(self):
        super().setUp()
        self.dev = self.p.netdev

    def link(self, vm):
        return json.loads(vm.run("ip -j -s link show dev " + self.dev).out)[0]

    def ethtool_stats(self, vm):
        pairs = re.findall(r"^\s+(\w+): (\d+)$", vm.run("ethtool -S " + self.dev).out, re.M)
        return {name: int(value) for name, value in pairs}

    def set_mtu(self, mtu):
        for vm in (self.a, self.b):
            vm.run("ip link set %s mtu %d" % (self.dev, mtu))

    def ping(self, size, family=4, count=2):
        self.a.run("ping -%d -n -c %d -i 0.1 -W 5 -M do -s %d %s" % (family, count, size, self.p.address(self.b, family)))

    def test_rdma_link(self):
        for vm in (self.a, self.b):
            self.assertRegex(vm.run("rdma link").out, r"link %s/1 state ACTIVE physical_state LINK_UP netdev %s\b"
                             % (self.device, self.dev))

    def test_ibv_devinfo(self):
        text = self.a.run("ibv_devinfo -v -d " + self.device).out
        value = dict(re.findall(r"^\s+(\w+):\s+(\S.*?)\s*$", text, re.M))
        for name, least in (("max_qp", 1000), ("max_qp_wr", 1024), ("max_cq", 1000), ("max_cqe", 65535), ("max_mr", 1000),
                            ("max_sge", 4), ("max_pd", 100), ("max_qp_rd_atom", 4), ("max_qp_init_rd_atom", 4)):
            self.assertGreaterEqual(int(value[name].split()[0]), least, name)
        self.assertEqual(value["link_layer"], "Ethernet")
        self.assertEqual(value["state"], "PORT_ACTIVE (4)")
        self.assertEqual(value["atomic_cap"], "ATOMIC_HCA (1)")
        self.assertEqual(value["max_msg_sz"], "0x80000000")
        self.assertNotEqual(value["node_guid"].replace(":", "").strip("0"), "")
        self.assertIn("::ffff:%s, RoCE v2" % self.p.address(self.a), text)

    def test_guids_differ(self):
        guids = {vm.run("cat /sys/class/infiniband/%s/node_guid" % self.device).out for vm in (self.a, self.b)}
        self.assertEqual(len(guids), 2)

    def test_lspci(self):
        self.assertRegex(self.a.run("lspci -k -d ::0200 | grep -A3 -i 01:00.0").out, "Kernel driver in use: ornic")

    def test_ethtool_identity(self):
        text = self.a.run("ethtool -i " + self.dev).out
        self.assertRegex(text, r"(?m)^driver: ornic$")
        self.assertRegex(text, r"(?m)^firmware-version: \S+")
        self.assertRegex(text, r"(?m)^bus-info: 0000:01:00\.0$")

    def test_ethtool_features_and_rings(self):
        self.assertRegex(self.a.run("ethtool -k " + self.dev).out, r"rx-checksumming: on")
        self.assertRegex(self.a.run("ethtool -g " + self.dev).out, r"RX:\s+\d+")

    def settings(self, command):
        """Return the current settings of ethtool, by name in lower case."""
        return dict(re.findall(r"^([\w-]+):\s+(\d+)$", self.a.run("ethtool %s %s" % (command, self.dev)).out.split("Current")[-1].lower(),
                               re.M))

    def test_ethtool_ring_sizes(self):
        """Rings are powers of two. Invalid sizes leave them unchanged."""
        old = self.settings("-g")
        self.addCleanup(self.a.run, "ethtool -G %s rx %s tx %s" % (self.dev, old["rx"], old["tx"]))
        self.a.run("ethtool -G %s rx 100 tx 2048" % self.dev)
        self.assertEqual({name: self.settings("-g")[name] for name in ("rx", "tx")}, {"rx": "128", "tx": "2048"})
        self.ping(1000, count=10)
        self.assertNotEqual(self.a.run("ethtool -G %s rx 8" % self.dev, check=False).rc, 0)
        self.assertEqual(self.settings("-g")["rx"], "128")
        self.ping(1000)

    def test_ethtool_coalescing(self):
        self.addCleanup(self.a.run, "ethtool -C %s rx-usecs 0 rx-frames 0 tx-usecs 0 tx-frames 0" % self.dev)
        self.a.run("ethtool -C %s rx-usecs 100 rx-frames 8 tx-usecs 200 tx-frames 32" % self.dev)
        self.ping(1000, count=10)
        self.a.run("ip link set %s mtu 4000 && ip link set %s mtu 1500" % (self.dev, self.dev))     # new queues are moderated, too
        self.ping(1000, count=10)
        shown = self.settings("-c")
        self.assertEqual([shown[name] for name in ("rx-usecs", "rx-frames", "tx-usecs", "tx-frames")], ["100", "8", "200", "32"])
        self.assertNotEqual(self.a.run("ethtool -C %s rx-frames 1000000" % self.dev, check=False).rc, 0)

    def interrupts(self, kind):
        """Return the number of interrupts of one kind of the driver."""
        return sum(int(count) for line in self.a.run("grep ornic-%s /proc/interrupts" % kind).out.splitlines()
                   for count in line.split()[1:] if count.isdigit())

    def test_own_interrupt(self):
        """Frames do not interrupt the completion vectors of RDMA."""
        eth, comp = self.interrupts("eth"), self.interrupts("comp")
        self.ping(1000, count=20)
        self.assertGreater(self.interrupts("eth") - eth, 5)
        self.assertLess(self.interrupts("comp") - comp, 5)

    def test_errors_explained(self):
        """The driver explains why it rejects a request."""
        for command, text in (("ethtool -C %s rx-frames 1000000", "ornic: more than the device can delay its events"),
                              ("ethtool -G %s rx 8", "ornic: a ring has at least 16 entries")):
            result = self.a.run(command % self.dev, check=False)
            self.assertNotEqual(result.rc, 0)
            self.assertIn(text, result.out + result.err)

    def netlink(self):
        """Return the attributes of the interface from the kernel's netlink family netdev."""
        said = json.loads(self.a.run("python3 /tmp/netdev_nl.py " + self.dev).out)
        if said["qstats"] is None:
            self.skipTest("the kernel of %s has no statistics of queues" % harness.GUEST)
        return said

    def test_queues(self):
        """Netlink shows the NAPI context of both queues, its interrupt, and the page pool of the receive buffers."""
        self.a.push(os.path.join(harness.HERE, "netdev_nl.py"), "/tmp/")
        said = self.netlink()
        napi = said["napis"][0]
        self.assertEqual([(queue["id"], queue["type"], queue["napi-id"]) for queue in said["queues"]],
                         [(0, 0, napi["id"]), (0, 1, napi["id"])])
        irq = self.a.run("grep ornic-eth /proc/interrupts").out.split(":")[0].strip()
        self.assertEqual(napi["irq"], int(irq))
        pools = [pool for pool in said["pools"] if pool["inflight"]]
        self.assertTrue(pools)
        # 6.12 shows the NAPI context only of a pool that has one when it is created
        self.assertLessEqual({pool["napi-id"] for pool in pools if "napi-id" in pool}, {napi["id"]})

    def test_page_pool_statistics(self):
        """Netlink shows how many receive buffers the page pool has allocated. Debian's own kernels do not count that."""
        self.a.push(os.path.join(harness.HERE, "netdev_nl.py"), "/tmp/")
        if self.netlink()["pool-stats"] is None:
            self.skipTest("the kernel of %s has no statistics of page pools" % harness.GUEST)
        self.ping(1000, count=10)
        pools = self.netlink()["pool-stats"]
        self.assertTrue(pools)
        self.assertGreater(sum(pool["alloc-fast"] + pool["alloc-slow"] for pool in pools), 0)

    def test_channels(self):
        """The interface has one queue of each kind, and no more can be asked for."""
        said = self.a.run("ethtool -l " + self.dev).out
        self.assertEqual(re.findall(r"^Combined:\s+(\d+)", said, re.M), ["1", "1"], said)
        self.assertNotEqual(self.a.run("ethtool -L %s combined 2" % self.dev, check=False).rc, 0)
        self.assertEqual(self.a.run("ethtool -l " + self.dev).out, said)

    def test_queue_statistics(self):
        """Statistics grow with the traffic, do not fall when the queues are replaced, and add up to those of the interface."""
        self.a.push(os.path.join(harness.HERE, "netdev_nl.py"), "/tmp/")
        self.addCleanup(self.set_mtu, 1500)
        before = self.netlink()["totals"][0]
        self.ping(1000, count=10)
        self.set_mtu(4000)
        said = self.netlink()
        for name, least in (("rx-packets", 10), ("tx-packets", 10), ("rx-bytes", 10000), ("tx-bytes", 10000)):
            self.assertGreaterEqual(said["totals"][0][name] - before[name], least, name)
        queues = {0: "rx", 1: "tx"}
        self.assertEqual([(queue["id"], queue["type"]) for queue in said["qstats"]], [(0, 0), (0, 1)])
        for queue in said["qstats"]:
            name = queues[queue["type"]] + "-packets"
            self.assertGreaterEqual(queue[name], said["totals"][0][name] - 5)
        self.assertIn("rx-alloc-fail", said["totals"][0])
        self.assertIn("tx-stop", said["totals"][0])

    def test_mac_statistics(self):
        """Counts frames of the interface and RoCE packets; statistics that the device does not count are not shown."""
        def frames():
            said = json.loads(self.a.run("ethtool --json -S %s --groups eth-mac" % self.dev).out)[0]["eth-mac"]
            return said
        before = frames()
        self.ping(1000, count=10)
        after = frames()
        self.assertEqual(set(after), {"FramesTransmittedOK", "FramesReceivedOK"})
        for name in after:
            self.assertGreaterEqual(after[name] - before[name], 10, name)
        self.exchange("between", "ibv_rc_pingpong -d %s -g %d -n 100" % (self.device, self.p.gid_index(self.b)),
                      "ibv_rc_pingpong -d %s -g %d -n 100 {addr}" % (self.device, self.p.gid_index(self.a)), 18515)
        self.assertGreaterEqual(frames()["FramesTransmittedOK"] - after["FramesTransmittedOK"], 200)

    def test_ethtool_link(self):
        text = self.a.run("ethtool " + self.dev).out
        self.assertRegex(text, r"Link detected: yes")
        self.assertRegex(text, r"Speed: \d+Mb/s")

    def test_statistics_move(self):
        for vm in (self.a, self.b):
            vm.run("true")
        before, more = self.link(self.a)["stats64"], self.ethtool_stats(self.a)
        self.ping(1000, count=10)
        after, then = self.link(self.a)["stats64"], self.ethtool_stats(self.a)
        for way in ("rx", "tx"):
            self.assertGreaterEqual(after[way]["packets"] - before[way]["packets"], 10)
            self.assertGreaterEqual(after[way]["bytes"] - before[way]["bytes"], 10000)
            for what, least in (("packets", 10), ("bytes", 10000)):
                name = "%s_%s" % (way, what)
                self.assertGreaterEqual(then[name] - more[name], least, name)

    def test_ping_sizes(self):
        for size in (0, 1, 17, 56, 1000, 1471, 1472):
            self.ping(size)
        for size in (0, 56, 1452):
            self.ping(size, 6)

    def test_jumbo_frames(self):
        self.addCleanup(self.set_mtu, 1500)
        for mtu in (1280, 4200, 9000):
            self.set_mtu(mtu)
            self.ping(mtu - 28)
            self.ping(mtu - 48, 6)
            if mtu == 9000:
                self.assertRegex(self.a.run("ibv_devinfo -d " + self.device).out, r"active_mtu:\s+4096")
            refused = self.a.run("ping -c 1 -W 1 -M do -s %d %s" % (mtu - 27, self.p.address(self.b)), check=False)
            self.assertNotEqual(refused.rc, 0)
        self.assertNotEqual(self.a.run("ip link set %s mtu 20000" % self.dev, check=False).rc, 0)

    def test_mtu_under_traffic(self):
        """New queues replace the old ones: the link stays up, and most frames arrive."""
        self.addCleanup(self.set_mtu, 1500)
        changes = "/sys/class/net/%s/carrier_changes" % self.dev
        before = self.a.run("cat " + changes).out
        self.set_mtu(1500)
        pings = self.spawn(self.b, "ping -q -i 0.01 -W 2 -c 1000 -s 1000 " + self.p.address(self.a), 120)
        self.a.run("for n in $(seq 8); do ip link set {0} mtu 9000 && sleep 0.1 && ip link set {0} mtu 1500 && sleep 0.1 || exit; done"
                   .format(self.dev), timeout=120)
        pings.wait(120)
        sent, received = map(int, re.search(r"(\d+) packets transmitted, (\d+) received", pings.text()).groups())
        self.assertEqual(sent, 1000)
        self.assertGreater(received, sent // 2, pings.text())
        self.assertEqual(self.a.run("cat " + changes).out, before)

    def fail_allocations(self, what, every):
        """Let every n-th allocation of pages or skbs for received frames of VM 0 fail, 0 for none."""
        self.a.run("echo %d > /sys/module/ornic_nomem/parameters/%s" % (every, what))

    def failed_allocations(self, what):
        return int(self.a.run("cat /sys/module/ornic_nomem/parameters/failed_" + what).out)

    def need_failing_allocations(self):
        kprobes.need(self, self.a)
        self.a.run("insmod /tmp/selftests/ornic_nomem.ko")
        self.addCleanup(self.a.run, "rmmod ornic_nomem")

    RING = 64

    def short_ring(self):
        """Let the receive ring of VM 0 have few entries."""
        self.addCleanup(self.a.run, "ethtool -G %s rx %s" % (self.dev, self.settings("-g")["rx"]))
        self.a.run("ethtool -G %s rx %d" % (self.dev, self.RING))

    def flood(self, frames, size):
        """Send frames to VM 0, also if it does not answer. VM 1 knows its address before."""
        self.b.run("ping -q -i 0.002 -W 1 -c %d -s %d %s" % (frames, size, self.p.address(self.a)), check=False, timeout=60)

    def test_receive_with_little_memory(self):
        """Some frames are lost, with buffers of one segment and of several, and the data of TCP arrives."""
        self.need_failing_allocations()
        self.addCleanup(self.set_mtu, 1500)
        for mtu in (1500, 9000):
            self.set_mtu(mtu)
            before = {what: self.failed_allocations(what) for what in ("pages", "skbs")}
            self.fail_allocations("pages", 3)
            self.fail_allocations("skbs", 50)
            self.a.run("ping -q -c 300 -i 0.002 -s 1400 %s; ping -q -c 300 -i 0.002 %s" % (2 * (self.p.address(self.b),)))
            self.tcp("-R")
            for what, number in before.items():
                self.assertGreater(self.failed_allocations(what), number + 5, what)
                self.fail_allocations(what, 0)
            self.ping(mtu - 28, count=20)

    def test_receive_without_memory(self):
        """The interface loses frames while no receive buffer can be allocated, and receives once there is memory again, also if
        its queues were replaced meanwhile."""
        self.need_failing_allocations()
        self.addCleanup(self.set_mtu, 1500)
        self.short_ring()
        for mtu in (1500, 4000):
            before = self.ethtool_stats(self.a)["driver_rx_no_buffer"]
            self.fail_allocations("pages", 1)
            self.flood(2 * self.RING, 1400)
            self.a.run("ip link set %s mtu %d" % (self.dev, mtu))
            self.assertNotEqual(self.a.run("ping -c 1 -W 1 " + self.p.address(self.b), check=False).rc, 0)
            self.assertGreater(self.ethtool_stats(self.a)["driver_rx_no_buffer"], before)
            self.fail_allocations("pages", 0)
            self.ping(1400, count=20)

    def test_drop_without_sk_buff(self):
        """A frame without sk_buff is dropped and counted, and its buffer is posted again."""
        self.need_failing_allocations()
        self.short_ring()
        self.addCleanup(self.b.run, "ip neigh flush nud permanent dev " + self.dev)
        self.b.run("ip neigh replace %s lladdr %s nud permanent dev %s" % (
            self.p.address(self.a), self.link(self.a)["address"], self.dev))
        for size in (56, 1400):
            before = self.link(self.a)["stats64"]["rx"]["dropped"]
            self.fail_allocations("skbs", 1)
            for _ in range(4):                  # a slow VM loses frames for which the ring has no entry
                self.flood(2 * self.RING, size)
                dropped = self.link(self.a)["stats64"]["rx"]["dropped"] - before
                if dropped > self.RING:
                    break
            self.fail_allocations("skbs", 0)
            self.assertGreater(dropped, self.RING)
        self.ping(1400)
        self.ping(56)

    def test_single_pages(self):
        """A host with fragmented memory can open the interface: no ring needs more than one contiguous page. A larger block is
        requested with further flags (NORETRY, NOWARN), because smaller ones will do; test_faults makes these requests fail."""
        old = self.settings("-g")
        self.addCleanup(self.a.run, "ip link set {0} mtu 1500; ethtool -G {0} rx {1} tx {2}".format(self.dev, old["rx"], old["tx"]))
        kprobes.trace(self, self.a, "p:lab/block dma_alloc_attrs size=%si gfp=%cx:u32")
        self.a.run("ethtool -G {0} rx 4096 tx 4096 && ip link set {0} mtu 9000".format(self.dev))
        self.ping(1000)
        blocks = [(int(size, 0), int(gfp)) for size, gfp in re.findall(r"block: .* size=(\w+) gfp=(\d+)", kprobes.traced(self.a))]
        usual = min((gfp for _, gfp in blocks), key=int.bit_count)
        for size, gfp in blocks:
            self.assertEqual(gfp & usual, usual)
            self.assertTrue(size <= 4096 or gfp != usual, size)

    def test_interrupts_are_spread(self):
        """Each completion vector has an affinity hint for another processor."""
        numbers = self.a.run("awk -F: '/ornic-comp/ { print $1 }' /proc/interrupts").out.split()
        hints = self.a.run("cd /proc/irq; cat %s" % " ".join("%s/affinity_hint" % number for number in numbers)).out.split()
        processors = [bit for hint in hints for bit in range(64) if int(hint.replace(",", ""), 16) >> bit & 1]
        self.assertEqual(len(processors), len(numbers), hints)
        self.assertEqual(len(set(processors)), min(len(numbers), int(self.a.run("nproc").out)), hints)

    def test_smaller_mtu_of_one_side(self):
        """Frames larger than the receiver's MTU are lost, others arrive."""
        self.addCleanup(self.set_mtu, 1500)
        self.set_mtu(1500)
        self.b.run("ip link set %s mtu 9000" % self.dev)
        self.ping(1472)

    def iperf(self, options, family=4):
        server = self.spawn(self.b, "iperf3 -s -1", 60)
        self.b.wait_listen(IPERF, 30)
        said = self.a.run("iperf3 -J -c %s -t %d %s" % (self.p.address(self.b, family), 2 * harness.SLOW, options), timeout=60).out
        server.wait(30)
        return json.loads(said)["end"]

    def tcp(self, options, family=4):
        self.assertGreater(self.iperf(options, family)["sum_received"]["bytes"], 1 << 20)

    def test_tcp(self):
        self.tcp("")

    def test_tcp_reverse(self):
        self.tcp("-R")

    def test_tcp_ipv6_four_streams(self):
        self.tcp("-P 4", 6)

    def test_udp(self):
        end = self.iperf("-u -b 4M -l 1400")["sum"]
        self.assertGreater(end["packets"] - end["lost_packets"], 300)
        self.assertLess(end["lost_percent"], 20)

    def test_checksums(self):
        """A capture at the receiver finds no wrong checksum. With GRO it would contain packets whose checksum is not filled in
        yet."""
        self.addCleanup(self.b.run, "ethtool -K %s gro on" % self.dev)
        self.b.run("ethtool -K %s gro off" % self.dev)
        capture = self.spawn(self.b, "tcpdump -i %s -n -vv -c 400 not port 4791" % self.dev, 60)
        capture.wait_for("listening on", 30)
        server = self.spawn(self.b, "iperf3 -s -1", 60)
        self.b.wait_listen(IPERF, 30)
        self.a.run("iperf3 -c %s -n 4M" % self.p.address(self.b), timeout=60)
        server.wait(30)
        capture.wait(60)
        frames = [line for line in capture.text().splitlines() if "> %s" % self.p.address(self.b) in line]
        self.assertGreater(len(frames), 20)
        self.assertFalse([line for line in frames if "incorrect" in line or "bad cksum" in line])

    def test_checksum_field_anywhere(self):
        """A program may request a checksum at any place of its frame (PACKET_VNET_HDR); the interface sends it and stays up."""
        def sent():
            return self.link(self.a)["stats64"]["tx"]
        before = sent()
        self.a.run("""python3 -c '
import socket, struct
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("%s", 0))
s.setsockopt(263, 15, 1)  # SOL_PACKET, PACKET_VNET_HDR
frame = bytes.fromhex("ffffffffffff%s88b5") + bytes(1500)
for field in (508, 510, 511, 1000, 1512):
    s.send(struct.pack("=BBHHHH", 1, 0, 0, 0, 34, field - 34) + frame)
'""" % (self.dev, self.link(self.a)["address"].replace(":", "")))
        self.ping(56)
        after = sent()
        self.assertEqual(after["errors"], before["errors"])
        self.assertGreaterEqual(after["packets"] - before["packets"], 5)

    def test_data_over_tcp(self):
        receiver = self.spawn(self.b, "python3 -c 'import socket,hashlib; s=socket.create_server((\"\",7000)); "
                              "c,_=s.accept(); h=hashlib.sha256(); n=0\nwhile d:=c.recv(1<<16): h.update(d); n+=len(d)\n"
                              "print(n, h.hexdigest())'", 60)
        self.b.wait_listen(7000, 30)
        sent = self.a.run("head -c 20000000 /dev/urandom > /tmp/data; sha256sum /tmp/data; python3 -c 'import socket; "
                          "s=socket.create_connection((\"%s\",7000)); s.sendfile(open(\"/tmp/data\",\"rb\"))'; rm /tmp/data"
                          % self.p.address(self.b), timeout=60).out.split()[0]
        receiver.wait(60)
        self.assertEqual(receiver.text().split(), ["20000000", sent])

    def test_mac_change(self):
        old = self.link(self.a)["address"]
        self.addCleanup(self.a.run, "ip link set %s address %s" % (self.dev, old))
        self.a.run("ip link set %s address 02:00:00:99:00:01" % self.dev)
        self.b.run("ip neigh flush dev " + self.dev)
        self.ping(56)
        seen = self.b.run("ip neigh show %s dev %s" % (self.p.address(self.a), self.dev)).out
        self.assertIn("02:00:00:99:00:01", seen)
        self.a.run("ip link set %s address %s" % (self.dev, old))
        self.b.run("ip neigh flush dev " + self.dev)
        self.ping(56)

    def test_promiscuous(self):
        """The interface receives a frame for another address only while promiscuous."""
        self.addCleanup(self.a.run, "ip neigh flush dev %s; ip link set %s promisc off" % (self.dev, self.dev))
        self.a.run("ip neigh replace 10.88.0.77 lladdr 02:00:00:00:00:77 dev " + self.dev)
        for flag, wanted in (("-p", 0), ("", 1)):
            capture = self.spawn(self.b, "tcpdump -i %s -n -l %s icmp" % (self.dev, flag), 60)
            capture.wait_for("listening on", 30)
            self.a.run("ping -c 3 -i 0.1 -W 1 10.88.0.77", check=False)
            self.a.run("ping -c 1 -W 5 " + self.p.address(self.b))
            capture.wait_for("> %s: ICMP echo request" % self.p.address(self.b), 30)
            self.assertEqual("10.88.0.77: ICMP echo request" in capture.text(), bool(wanted), capture.text())
            capture.kill()

    def test_link_down_and_up(self):
        addresses = "ip -6 addr add %s/64 dev %s nodad 2>/dev/null" % (self.p.address(self.a, 6), self.dev)
        self.addCleanup(self.a.run, "ip link set %s up; %s" % (self.dev, addresses), check=False)
        self.a.run("ip link set %s down" % self.dev)
        self.wait_port("DOWN")
        self.assertNotEqual(self.a.run("ping -c 1 -W 1 " + self.p.address(self.b), check=False).rc, 0)
        self.a.run("ip link set %s up; %s" % (self.dev, addresses), check=False)
        self.wait_port("ACTIVE")
        self.ping(56)


if __name__ == "__main__":
    harness.main()
