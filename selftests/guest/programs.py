# SPDX-License-Identifier: GPL-2.0
"""Test programs in C, whose TAP points become tests here.

Most run at both ends: the server serves all tests of a file, the client runs once per place and mode and prints TAP for many tests at
once. Others need one VM only and run once per test.
"""
import re

import harness


class ProgramTest(harness.GuestTest):
    """A file's test case; program and port name its C program."""

    program = None
    port = None
    both = ""                                   # options of both ends

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.said = {}

    def ask(self, place, options, names="", timeout=150, other=None):
        """Return the client's output for these tests, or for all; other: name and port of a program instead of the file's."""
        there, here = self.ends(place)
        program, port = other or (self.program, self.port)
        serve, ask = ("/tmp/selftests/%s -d %s %s" % (program, self.p.device_of(vm), self.both) for vm in (there, here))
        server = self.spawn(there, serve, timeout + 10)
        there.wait_listen(port, 30)
        result = here.run("%s %s vm%d %s" % (ask, options, there.number, names), timeout=timeout, check=False)
        said = result.out + result.err
        if result.rc == 124:
            said += "\nno end within %d s" % timeout
        elif result.rc > 1:
            said += "\nstatus %d" % result.rc
        return said + "\nserver: " + server.text().strip()

    def one_point(self, place, options, name, timeout=150):
        self.judge(self.ask(place, options, name, timeout), name)

    def shared_point(self, place, options, names, name):
        """Judge one point of a run of all names; the first point that is asked for starts the run."""
        key = place, options
        self.used_vms = key not in self.said
        if self.used_vms:
            self.said[key] = self.ask(place, options, " ".join(names))
        self.judge(self.said[key], name)

    def judge(self, said, name):
        point = re.search(r"^(ok|not ok) \d+ - %s(?: # SKIP (.*))?\n((?:# .*\n)*)" % name, said, re.M)
        if not point:
            self.fail("no result of %s: %s" % (name, said[-1500:]))
        if point.group(2):
            self.skipTest(point.group(2))
        self.assertEqual(point.group(1), "ok", point.group(3))


def points(case, names, places=harness.PLACES, **modes):
    """Add a test method for each place, mode (keyword: options of the client) and name."""
    for place in places:
        for mode, options in modes.items():
            for name in names:
                def test(self, place=place, options=options, name=name):
                    self.shared_point(place, options, names, name)
                setattr(case, "test_%s_%s_%s" % (place, mode, name), test)


class LocalTest(ProgramTest):
    """A file's test case whose programs run within one VM."""

    ornic_only = True

    def one_here(self, command, name, timeout=120):
        result = self.a.run("/tmp/selftests/%s %s" % (command, name), timeout=timeout, check=False)
        said = result.out + result.err
        self.assertNotIn("# SKIP", said)
        self.judge(said, name)
        self.assertEqual(result.rc, 0, said[-1500:])


def local_points(case, program, names, prefix="", device="%s", **options):
    """Add a test method for each name; device: the option by which the program takes its device."""
    for name in names:
        def test(self, name=name):
            self.one_here("%s %s" % (program, device % self.device), name, **options)
        setattr(case, "test_" + prefix + name, test)
