# SPDX-License-Identifier: GPL-2.0
"""Test programs side by side, in lanes: each lane runs one at a time, and has VMs of its own for the guest tests.

Those that compare what two do in the same time run last and have the machine for themselves.
"""
import collections
import os
import sys
import threading

from . import program

ALONE = {"guest/test_congestion"}
LANE_MEMORY = 8 << 30               # what a lane's VMs, and those of a test with its own, may take
MOST = 4


def default():
    """As many lanes as the machine has room for; of the kernels that check themselves one is load enough."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 1 if program.IS_DEBUG else max(1, min(os.cpu_count(), memory // LANE_MEMORY, MOST))


class Lane(threading.Thread):
    def __init__(self, number, lanes):
        super().__init__()
        self.number, self.lanes = number, lanes
        self.lab = None
        self.running = None         # its program

    def run(self):
        try:
            self.run_all()
        except Exception as e:      # pylint: disable=broad-except
            self.lanes.failed("lane %d: %s: %s" % (self.number, type(e).__name__, e))

    def run_all(self):
        try:
            while path := self.lanes.take():
                self.run_one(path)
        finally:
            if self.lab:
                self.lab.down()

    def run_one(self, path):
        env = {}
        if program.suite_of(path) == "guest" and "ORNIC_TEST_LAB" not in program.ENV:
            if not self.lab and not self.start_guests():
                return
            env["ORNIC_TEST_LAB"] = self.lab.name
        self.running = program.Program(path, env)
        if self.lanes.stopped:
            self.running.stop()
        self.running.wait()
        self.lanes.ended(self.running)

    def start_guests(self):
        """The VMs that all guest tests of the lane share."""
        harness = guest_harness()
        try:
            self.lab = harness.start_lab(name="check-%d-%d" % (os.getpid(), self.number))
        except harness.LabError as e:
            self.lanes.leave_out("guest")
            self.lanes.failed("guest: %s" % e)
            return False
        return True


def guest_harness():
    os.environ["O"] = program.ENV["O"]
    sys.path.insert(0, os.path.join(program.HERE, "guest"))
    import harness                  # pylint: disable=import-outside-toplevel
    return harness


class Lanes:
    """Runs programs in the order given, and adds up what they say in count."""

    def __init__(self, number, verbose):
        self.number, self.verbose = number, verbose
        self.count = program.Count()
        self.left = collections.deque()
        self.lock = threading.Lock()
        self.stopped = False
        self.lanes = []

    def run(self, paths):
        """Returns when all have ended; an interrupt ends those that run."""
        together = [p for p in paths if program.name_of(p) not in ALONE]
        self.side_by_side(together, self.number)
        self.side_by_side([p for p in paths if p not in together], 1)

    def side_by_side(self, paths, number):
        self.left.extend(paths)
        self.lanes = [Lane(i, self) for i in range(min(number, len(paths)))]
        for lane in self.lanes:
            lane.start()
        try:
            for lane in self.lanes:
                lane.join()
        except BaseException:
            self.stop()
            raise

    def stop(self):
        """Nothing more is begun, and what runs is told to end."""
        self.stopped = True
        for lane in self.lanes:
            if lane.running:
                lane.running.stop()
        for lane in self.lanes:
            lane.join()

    # ---- for the lanes ----

    def take(self):
        """The next program, or None."""
        with self.lock:
            return None if self.stopped or not self.left else self.left.popleft()

    def ended(self, one):
        with self.lock:
            if self.stopped:
                return
            self.count.add(one.count)
            print(one.report(self.verbose), flush=True)

    def leave_out(self, suite):
        with self.lock:
            self.left = collections.deque(p for p in self.left if program.suite_of(p) != suite)

    def failed(self, problem):
        """Something that is not about one program."""
        with self.lock:
            self.count.failed += 1
            print("FAIL  %s" % problem, flush=True)
