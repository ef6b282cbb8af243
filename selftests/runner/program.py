# SPDX-License-Identifier: GPL-2.0
"""One test program: its place, and its TAP output."""
import glob
import os
import re
import signal
import subprocess
import time

HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
TOP = os.path.dirname(HERE)
ENV = {**os.environ, "CMOCKA_MESSAGE_OUTPUT": "TAP", "O": os.environ.get("O", os.path.join(TOP, "build"))}
IS_DEBUG = ENV.get("GUEST", "").endswith("-debug")      # a kernel that checks itself is slow
PATIENCE = 1800 * (6 if IS_DEBUG else 1)                # seconds for one program; a guest test file is the longest
TERM_PATIENCE = 20              # seconds to end after a signal
REASON = 240                    # characters of a failure's first diagnostic line that its summary repeats
POINT = re.compile(r"^(not )?ok\b[ \t]*(\d+)?[ \t]*-?[ \t]*(.*?)(?:[ \t]*#[ \t]*(SKIP|skip)\b:?[ \t]*(.*))?$")
PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#\s*SKIP\s*(.*))?$")


class Count:
    """Test points of a program, or of many."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self):
        return "%d passed, %d failed, %d skipped" % (self.passed, self.failed, self.skipped)


def find(suite):
    """Return the test programs of a suite: binaries of C tests in the build folder, scripts in the source tree."""
    found = glob.glob(os.path.join(ENV["O"], "selftests", suite, "test_*")) + glob.glob(os.path.join(HERE, suite, "test_*"))
    return sorted(p for p in found if os.access(p, os.X_OK) and os.path.isfile(p) and not p.endswith((".c", ".o", ".d")))


def name_of(path):
    return os.path.join(suite_of(path), os.path.splitext(os.path.basename(path))[0])


def suite_of(path):
    return os.path.basename(os.path.dirname(path))


def is_pass(line):
    """Return true if a line reports a passed test point: many of these would hide the reason of a failure."""
    point = POINT.match(line)
    return bool(point) and not point.group(1) and not point.group(4)


class Program:
    """A running program, which may be asked to end."""

    def __init__(self, path, env):
        self.name = name_of(path)
        self.count = Count()
        self.problems = []
        self.skips = []             # test points left out, and why
        self.start = time.monotonic()
        self.child = subprocess.Popen([path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                      cwd=TOP, start_new_session=True, text=True, errors="replace", env={**ENV, **env})

    def wait(self, is_stopped):
        """Wait for its end, or end it when it is time to, and judge it."""
        late = None
        while late is None:
            try:
                self.text, _ = self.child.communicate(timeout=1)
                break
            except subprocess.TimeoutExpired:
                if is_stopped():
                    late = "was stopped"
                elif time.monotonic() - self.start > PATIENCE:
                    late = "did not end within %d s" % PATIENCE
        if late:
            self.text = self.end() or ""
        self.seconds = time.monotonic() - self.start
        self.judge()
        if late:
            self.fail(late)

    def end(self):
        """End it and its children; return its output, or None if a process still holds the pipe."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.child.pid, number)
            except ProcessLookupError:
                pass                # it has ended, and its children have not
            try:
                return self.child.communicate(timeout=TERM_PATIENCE)[0]
            except subprocess.TimeoutExpired:
                pass
        self.child.stdout.close()
        return None

    def judge(self):
        """Count its test points and find the reasons of its failure."""
        planned, points, wants_reason = None, 0, False
        for line in self.text.splitlines():
            plan = PLAN.match(line)
            if plan:
                planned = (planned or 0) + int(plan.group(1))
                if plan.group(2) is not None and plan.group(1) == "0":
                    self.count.skipped += 1
                    self.skips.append(plan.group(2))
                continue
            point = POINT.match(line)
            if point:
                points += 1
                wants_reason = self.judge_point(point)
            elif wants_reason and line.startswith("# "):
                self.problems[-1] += ": " + line[2:2 + REASON]
                wants_reason = False
        if planned is None or points < planned:
            self.fail("stopped after %d of %s tests" % (points, "?" if planned is None else planned))
        elif self.child.returncode and not self.problems:
            self.fail("exit status %d" % self.child.returncode)

    def judge_point(self, point):
        """Count a test point. Return true if it failed; its reason follows."""
        if point.group(4):          # cmocka 1.1.5, of Debian 12, says "not ok 6 # SKIP name"
            self.count.skipped += 1
            self.skips.append(": ".join(filter(None, (point.group(3), point.group(5)))))
        elif point.group(1):
            self.fail(point.group(3))
        else:
            self.count.passed += 1
        return bool(point.group(1)) and not point.group(4)

    def fail(self, problem):
        self.count.failed += 1
        self.problems.append(problem)

    def failures(self):
        """Return a line for each failure."""
        return ["FAIL  %s: %s" % (self.name, problem) for problem in self.problems]

    def report(self, verbose):
        """Return its report, as lines."""
        lines = ["  skip  %s: %s" % (self.name, skip) for skip in self.skips]
        lines.append("%s  %-34s %3d passed  %5.1f s" % ("FAIL" if self.problems else "ok  ", self.name, self.count.passed,
                                                       self.seconds))
        lines += self.failures()
        if self.problems:
            lines.append("      again: selftests/run -v %s" % self.name)
        if self.problems or verbose:
            lines += ["    | " + line for line in self.text.splitlines() if verbose or not is_pass(line)]
        return "\n".join(lines)
