# SPDX-License-Identifier: GPL-2.0
"""prog/rc_loop.py in a VM: a process with two connected queue pairs that executes the operations that a test requests."""
import os

import harness

PROGRAM = os.path.join(harness.HERE, "prog", "rc_loop.py")


class Loop:
    """The program, started; it ends with the test."""

    def __init__(self, test, vm, gid_index=None, options="", prefix=""):
        vm.push(PROGRAM, "/tmp/")
        if gid_index is None:
            gid_index = test.p.gid_index(vm)
        self.process = test.spawn(vm, "%s python3 /tmp/rc_loop.py %s %d %s" % (prefix, test.device, gid_index, options), 120)
        self.answers = 0
        self.qpns = [int(n) for n in self.process.wait_for(r"(?m)^qps (\d+) (\d+)$", 60).groups()]

    def ask(self, line):
        """Return the program's answer to a command."""
        self.answers += 1
        self.process.write(line.encode() + b"\n")
        answer = self.process.wait_for(r"\A(?:(?:(?!done|failed).*\n)*(?:done|failed).*\n){%d}" % self.answers, 60)
        return answer.group(0).splitlines()[-1]

    def do(self, line):
        """Execute a command that must work."""
        answer = self.ask(line)
        if not answer.startswith("done"):
            raise AssertionError("%s: %s" % (line, answer))
        return answer

    def end(self):
        self.process.end_input()
        self.process.wait(30)
