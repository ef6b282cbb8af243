#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Unplugged peers: the link goes down, or the other VM loses power, in the middle of a transfer.

The last test of the file kills VM 1 and starts it again, which gives it a fresh system; the file's name makes it the suite's last.
"""
import harness

PORT = 18515
TOLD = r"(?i)retry|status 12|Failed"


class Link(harness.GuestTest):
    ornic_only = True

    def transfer(self, options="-s 65536 -D 60"):
        """Start an endless write from VM 0 to VM 1; return server and client once data flows."""
        command = "exec ib_write_bw -d %s -F -p %d %s" % (self.device, PORT, options)
        server = self.spawn(self.b, command, 120)
        self.b.wait_listen(PORT, 30)
        # its TCP connection runs over the virtio link, which stays
        client = self.spawn(self.a, command + " vm1", 120)
        self.b.run("f=/sys/class/infiniband/%s/ports/1/hw_counters/rdma_rx_bytes; a=$(cat $f); "
                   "until [ $(cat $f) -gt $((a + 1000000)) ]; do sleep 0.05; done" % self.device, timeout=60)
        return server, client

    def set_link(self, vm, state):
        vm.run("ip link set %s %s" % (self.p.netdev, state))
        if state == "up":
            vm.run("ip -6 addr replace %s/64 dev %s nodad" % (self.p.address(vm, 6), self.p.netdev))
        self.wait_port("ACTIVE" if state == "up" else "DOWN", vm)

    def works(self):
        command = "ib_write_bw -d %s -F -p %d -s 4096 -n 50" % (self.device, PORT)
        self.exchange("between", command, command + " {addr}", PORT)

    def unplug(self, vm):
        server, client = self.transfer()
        self.addCleanup(self.set_link, vm, "up")
        self.set_link(vm, "down")
        self.assertNotEqual(client.wait(90), 0, "the client ended well although its link was down")
        self.assertRegex(client.text(), TOLD)
        server.kill()
        self.set_link(vm, "up")
        self.works()

    def test_1_peer_link_down(self):
        self.unplug(self.b)

    def test_2_own_link_down(self):
        self.unplug(self.a)

    def test_3_short_interruption(self):
        """A link that comes back before the retries are exhausted loses nothing."""
        server, client = self.transfer("-s 65536 -n 60000 -u 18")
        self.set_link(self.b, "down")
        self.set_link(self.b, "up")
        self.assertEqual(client.wait(110), 0, client.text())
        self.assertEqual(server.wait(60), 0, server.text())

    def test_4_peer_loses_power(self):
        _, client = self.transfer()
        self.b.kill()
        self.assertNotEqual(client.wait(90), 0, "the client ended well although its peer is off")
        self.assertRegex(client.text(), TOLD)
        self.p.lab.start(1)
        self.p.prepare()
        self.works()


if __name__ == "__main__":
    harness.main()
