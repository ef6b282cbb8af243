# SPDX-License-Identifier: GPL-2.0
"""rdma-core's own tests of verbs, run in a guest against an ornic device; each is a test point.

The tests are those of the guest's pyverbs package, kept in its build root. skips.toml lists the tests that may skip, with
reasons. An unlisted test that skips fails, and so do a listed test that passes and an entry that no test needs. So the list is
exactly the set of features that ornic or the guest's kernel lacks.
"""
import fnmatch
import glob
import json
import os
import re
import sys
import tomllib

import harness
from lab import LabError, build

HERE = os.path.dirname(os.path.realpath(__file__))
IN_GUEST = os.path.join(HERE, "in_guest.py")
TESTS = "/tmp/pyverbs-tests"            # in the guest
PATIENCE = 60 * harness.SLOW            # seconds for one test; the slowest takes four on an idle machine
SEED = os.environ.get("ORNIC_TEST_SEED", "0")


class Skips:
    """The entries of skips.toml for a guest release and its kernel's release."""

    def __init__(self, guest, kernel):
        with open(os.path.join(HERE, "skips.toml"), "rb") as f:
            told = tomllib.load(f)
        self.vendors = told["vendor"]
        self.entries = [e for e in told["skip"] if guest in e.get("guests", [guest])]
        self.newer = [e for e in told["newer"] if guest in e["guests"] and kernel.startswith(tuple(e["kernels"]))]

    def vendor_of(self, module):
        """Return the reason for which a module does not run, or None."""
        return next((v["reason"] for v in self.vendors if any(fnmatch.fnmatch(module, p) for p in v["files"])), None)

    @staticmethod
    def _find(entries, name):
        return next((e for e in entries if any(fnmatch.fnmatch(name, p) for p in e["tests"])), None)

    def of(self, name):
        """Return the entry that permits a test to skip, or None."""
        return self._find(self.entries, name)

    def newer_for(self, name):
        """Return the entry because of which a test cannot pass on this kernel, or None."""
        return self._find(self.newer, name)

    def idle(self, names):
        """Return the patterns that match none of the tests."""
        return [p for e in self.entries + self.newer for p in e["tests"] if not any(fnmatch.fnmatch(n, p) for n in names)]


class Points:
    """TAP output."""

    def __init__(self):
        self.number = self.bad = 0

    def say(self, name, wrong=None, skip=None):
        """Print a test point, which fails if there is a text about a fault."""
        self.number += 1
        self.bad += wrong is not None
        print("%s %d - %s%s" % ("ok" if wrong is None else "not ok", self.number, name, " # SKIP " + skip if skip else ""))
        for line in (wrong or "").splitlines():
            print("# " + line)
        sys.stdout.flush()


def judge(result, entry, newer):
    """Return (fault, reason of the skip) of a test's result, either may be None; entry is the one that permits it to skip, newer the
    one because of which it cannot pass on this kernel."""
    heard = [line for line in result["kernel"] if harness.COMPLAINT.search(line)]
    if newer and not heard and result["result"] != "ok":
        return None, newer["reason"]
    entry = newer or entry
    if heard or result["result"] in ("fail", "error"):
        return "\n".join([result["text"].rstrip(), "%g s; the kernel meanwhile:" % result["seconds"]] + result["kernel"]), None
    if result["result"] == "skip":
        if not entry:
            return "skipped, and selftests/pyverbs/skips.toml does not say that it may: " + result["text"], None
        if not re.search(entry["says"], result["text"]):
            return "skipped, but not for the reason in selftests/pyverbs/skips.toml /%s/: %s" % (entry["says"], result["text"]), None
        return None, entry["reason"]
    if entry:
        return "passes, but selftests/pyverbs/skips.toml lets it skip (%s): take it off the list" % entry["reason"], None
    return None, None


class Suite:
    """The tests in VM 0 of a pair."""

    def __init__(self, pair, guest):
        self.pair, self.vm = pair, pair.a
        self.skips = Skips(guest, self.vm.run("uname -r").out.strip())
        self.points = Points()
        self.folder = os.path.join(build.artefact(guest).get(), "usr/src/pyverbs-tests")
        self.modules = sorted(os.path.basename(p)[:-3] for p in glob.glob(self.folder + "/test_*.py"))

    def command(self, *words):
        return "python3 /tmp/in_guest.py " + " ".join(words)

    def list(self):
        """Return the names of the tests that are not a vendor's."""
        self.vm.push(self.folder, TESTS)
        self.vm.push(IN_GUEST, "/tmp/in_guest.py")
        modules = [m for m in self.modules if not self.skips.vendor_of(m)]
        return json.loads(self.vm.run(self.command("list", TESTS, *modules), timeout=300).out)

    def run(self, chosen):
        """Run the tests that match one of the chosen patterns, all if there is none."""
        names = self.list()
        wanted = [n for n in names if not chosen or any(fnmatch.fnmatch(n, p) for p in chosen)]
        if not wanted:
            raise LabError("no test of pyverbs is called %s; there are: %s" % (" ".join(chosen), " ".join(names)))
        self.run_tests(wanted)
        if not chosen:
            for module in self.modules:
                if reason := self.skips.vendor_of(module):
                    self.points.say(module, skip=reason)
            idle = self.skips.idle(names)
            self.points.say("list_of_skips", "no test matches: " + " ".join(idle) if idle else None)
        wrong = self.pair.settled()
        self.points.say("nothing_left_behind", "\n".join(wrong) if wrong else None)
        if harness.DEBUG:
            lost = self.pair.leaks()
            self.points.say("no_memory_lost", "\n".join(lost) if lost else None)

    def run_tests(self, names):
        missing = list(names)
        rest = b""

        def take(kind, data):
            nonlocal rest
            if kind != b"o":
                return
            *lines, rest = (rest + data).split(b"\n")
            for line in filter(None, lines):
                result = json.loads(line)
                missing.remove(result["name"])
                self.report(result)
        limit = len(names) * PATIENCE
        ended = self.vm.run(self.command("run", TESTS, self.pair.device, str(self.pair.gid_index(self.vm)), str(PATIENCE), SEED, *names),
                            timeout=limit, check=False, sink=take)
        for name in missing:
            self.points.say(name, "did not run: status %d, %s" % (ended.rc, ended.err[-1000:]))

    def report(self, result):
        wrong, skip = judge(result, self.skips.of(result["name"]), self.skips.newer_for(result["name"]))
        if wrong:
            wrong += "\nalone: %s %s" % (os.path.relpath(sys.argv[0], harness.TOP), result["name"])
        self.points.say(result["name"], wrong, skip)


def main(pair, guest, chosen):
    """Print TAP; return the number of failed points."""
    suite = Suite(pair, guest)
    try:
        suite.run(chosen)
    except LabError as e:
        suite.points.say("pyverbs", str(e))
    print("1..%d" % suite.points.number)
    if suite.points.bad:
        pair.explain()
    return suite.points.bad
