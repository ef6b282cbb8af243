#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Processes that die in the middle of a transfer: the peer is informed, no object remains, the next pair works."""
import harness
from harness import LabError

PORT = 18515


class Process(harness.GuestTest):
    def start(self, place, program, options):
        """Start an endless transfer; return server and client once data flows."""
        there, here = self.ends(place)
        command = "exec %s -d %s -F -p %d %s" % (program, self.device, PORT, options)
        server = self.spawn(there, command, 120)
        there.wait_listen(PORT, 30)
        client = self.spawn(here, "%s %s" % (command, self.p.address(there)), 120)
        show = "rdma res show qp link %s" % self.device
        try:
            here.run("until %s | grep 'state RTS' | grep -q pid; do sleep 0.05; done" % show, timeout=30)
            self.moves(there)
        except LabError as e:
            queues = here.run(show, check=False, timeout=30)
            self.fail("no data flows: %s\nserver: status %s\n%s\nclient: status %s\n%s\nqueue pairs of the client's host:\n%s" % (
                e, server.poll(), server.text()[-1500:], client.poll(), client.text()[-1500:], queues.out + queues.err))
        return server, client

    def moves(self, vm):
        """Wait until packets flow."""
        vm.run("f=/sys/class/infiniband/%s/ports/1/hw_counters/%s; a=$(cat $f); until [ $(cat $f) -gt $((a + 50)) ]; "
               "do sleep 0.05; done" % (self.device, "rdma_rx_packets" if self.p.is_ornic else "rcvd_pkts"), timeout=30)

    def works(self, place):
        command = "ib_write_bw -d %s -F -p %d -s 4096 -n 50" % (self.device, PORT)
        self.exchange(place, command, command + " {addr}", PORT)

    def killed(self, place, program, options, server_dies, client_dies, told):
        server, client = self.start(place, program, options)
        for process, dies in ((server, server_dies), (client, client_dies)):
            if dies:
                process.signal(9)
        if server_dies:
            self.assertEqual(server.wait(30), 137)
        if client_dies:     # on a loaded machine it may have seen its server's death before its own
            self.assertIn(client.wait(30), (1, 137) if server_dies else (137,))
        if told:
            status = client.wait(60)
            self.assertNotEqual(status, 0, "the client ended well although its server was killed")
            self.assertRegex(client.text(), told)
        elif not server_dies:
            server.kill()
        self.check_settled()
        self.works(place)

    GONE = r"(?i)retry|status 12|syndrom|Failed|unable|Couldn't"

    def test_server_killed_write(self):
        self.killed("between", "ib_write_bw", "-s 1048576 -D 60", True, False, self.GONE)

    def test_server_killed_read(self):
        self.killed("between", "ib_read_bw", "-s 1048576 -D 60", True, False, self.GONE)

    def test_server_killed_send(self):
        self.killed("between", "ib_send_bw", "-s 65536 -D 60", True, False, self.GONE)

    def test_client_killed_write(self):
        self.killed("between", "ib_write_bw", "-s 1048576 -D 60", False, True, None)

    def test_client_killed_send(self):
        self.killed("between", "ib_send_bw", "-s 65536 -D 60", False, True, None)

    def test_both_killed_within(self):
        self.killed("within", "ib_write_bw", "-s 65536 -q 16 -D 60", True, True, None)

    def test_client_killed_with_events(self):
        self.killed("between", "ib_send_bw", "-e -s 4096 -n 1000000", False, True, None)

    def test_rdma_cm_peer_is_told(self):
        """The kernel disconnects the connection of a process that died."""
        server = self.spawn(self.b, "exec rping -s -a %s -S 65000 -C 1000000" % self.p.address(self.b), 120)
        harness.cm_listens(self.b)
        client = self.spawn(self.a, "exec rping -c -a %s -S 65000 -C 1000000" % self.p.address(self.b), 120)
        self.moves(self.b)
        client.signal(9)
        self.assertEqual(client.wait(30), 137)
        server.wait(60)
        self.assertRegex(server.text(), r"(?i)disconnect|failed|error")


if __name__ == "__main__":
    harness.main()
