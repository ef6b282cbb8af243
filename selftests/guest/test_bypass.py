#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Kernel bypass and zero copy: no system calls per operation, no work at the passive side, one copied byte per payload byte."""
import re

import harness

PORT = 18515


class Bypass(harness.GuestTest):
    ornic_only = True

    def command(self, program, options):
        return "%s -d %s -F -p %d %s" % (program, self.device, PORT, options)

    def system_calls(self, iterations):
        """How many a polling ib_write_bw makes."""
        server = self.command("ib_write_bw", "-s 4096 -n %d" % iterations)
        self.exchange("between", server, "strace -f -c -U calls,name -o /tmp/strace " + server + " {addr}", PORT, timeout=120)
        total = re.search(r"^\s*(\d+) total", self.a.run("cat /tmp/strace").out, re.M)
        return int(total.group(1))

    def test_system_calls_do_not_grow(self):
        few, many = self.system_calls(1000), self.system_calls(10000)
        self.assertLess(abs(many - few), 100, "1000 operations: %d system calls, 10000: %d" % (few, many))

    def counters(self, vm):
        folder = "/sys/class/infiniband/%s/ports/1/hw_counters/" % self.device
        text = vm.run("cd %s && grep -H . *" % folder).out
        return {name: int(value) for name, value in re.findall(r"^(\w+):(\d+)$", text, re.M)}

    def one_copy(self, program, size, count):
        """Bytes that the daemon copied for a transfer, at both ends together, against its payload."""
        before = [self.counters(vm) for vm in (self.a, self.b)]
        command = self.command(program, "-s %d -n %d" % (size, count))
        self.exchange("between", command, command + " {addr}", PORT, timeout=120)
        after = [self.counters(vm) for vm in (self.a, self.b)]
        copied = sum(y["rdma_copied_bytes"] - x["rdma_copied_bytes"] for x, y in zip(before, after))
        # perftest sends a few messages more than it is asked for to warm up, and some bytes to exchange results
        self.assertGreaterEqual(copied, size * count)
        self.assertLess(copied, size * count * 1.02 + 4 * size, "%d bytes copied for %d" % (copied, size * count))

    def test_one_copy_per_byte_write(self):
        self.one_copy("ib_write_bw", 1 << 20, 400)

    def test_one_copy_per_byte_read(self):
        self.one_copy("ib_read_bw", 1 << 20, 400)

    def test_one_copy_per_byte_send(self):
        self.one_copy("ib_send_bw", 1 << 16, 2000)

    def passive_ticks(self, program, count):
        """Clock ticks (10 ms) that the server's process spends in a transfer of count times 64 KiB."""
        command = self.command(program, "-s 65536 -n %d" % count)
        server = self.spawn(self.b, "exec " + command, 120)
        self.b.wait_listen(PORT, 30)
        stat = "awk '{print $14 + $15}' /proc/$(pgrep -x %s)/stat" % program
        client = self.spawn(self.a, "%s %s" % (command, self.p.address(self.b)), 120)
        # its queue pairs are connected and it only waits for the client from when it reads the first keys on
        self.b.run("until rdma res show qp link %s | grep -q 'state RT[RS] .*pid'; do sleep 0.05; done" % self.device)
        start = int(self.b.run(stat).out)
        self.assertEqual(client.wait(120), 0, client.text())
        end = self.b.run(stat, check=False).out
        server.wait(60)
        return int(end or start) - start

    def passive(self, program):
        """The server's time does not grow with the transfer; the client's does."""
        few, many = self.passive_ticks(program, 1000), self.passive_ticks(program, 20000)
        self.assertLess(many - few, 20, "%d ticks with 1000 operations, %d with 20000" % (few, many))

    def test_passive_side_of_write(self):
        self.passive("ib_write_bw")

    def test_passive_side_of_read(self):
        self.passive("ib_read_bw")


if __name__ == "__main__":
    harness.main()
