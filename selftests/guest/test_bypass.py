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
        """Return the number of system calls of a polling ib_write_bw."""
        server = self.command("ib_write_bw", "-s 4096 -n %d" % iterations)
        self.exchange("between", server, "strace -f -c -U calls,name -o /tmp/strace " + server + " {addr}", PORT, timeout=120)
        calls = re.findall(r"^\s*(\d+) (\w+)$", self.a.run("cat /tmp/strace").out, re.M)
        # perftest reads the time to calibrate the processor's clock, in a number of calls that depends on the machine
        return sum(int(count) for count, name in calls if name not in ("total", "gettimeofday", "clock_gettime"))

    def test_system_calls_do_not_grow(self):
        few, many = self.system_calls(1000), self.system_calls(10000)
        self.assertLess(abs(many - few), 50, "1000 operations: %d system calls, 10000: %d" % (few, many))

    def counters(self, vm):
        folder = "/sys/class/infiniband/%s/ports/1/hw_counters/" % self.device
        text = vm.run("cd %s && grep -H . *" % folder).out
        return {name: int(value) for name, value in re.findall(r"^(\w+):(\d+)$", text, re.M)}

    def one_copy(self, program, size, count):
        """Compare the bytes that the daemon copied for a transfer, at both ends together, with its payload."""
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

    def server_time(self, program, count):
        """Return the processor time, in seconds, of the server for a transfer of count times 64 KiB."""
        command = self.command(program, "-s 65536 -n %d" % count)
        _, said = self.exchange("between", "TIMEFORMAT='time %U %S'; time " + command, command + " {addr}", PORT, timeout=120)
        return sum(float(x) for x in re.search(r"time ([\d.]+) ([\d.]+)", said).groups())

    def passive(self, program):
        """Check that the server's time is that of its set-up and does not grow with the transfer. Other load on the host only
        adds to both."""
        few, many = [], []
        for _ in range(3):
            few.append(self.server_time(program, 1000))
            many.append(self.server_time(program, 20000))
            if min(many) - min(few) < 0.25:
                return
        self.fail("seconds with 1000 operations: %s, with 20000: %s" % (few, many))

    def test_passive_side_of_write(self):
        self.passive("ib_write_bw")

    def test_passive_side_of_read(self):
        self.passive("ib_read_bw")


if __name__ == "__main__":
    harness.main()
