# SPDX-License-Identifier: GPL-2.0
"""Test programs in parallel lanes: each lane runs one at a time, and has separate VMs for the guest tests.

Tests that compare two simultaneous activities run last, with their own VMs, one at a time.
"""
import collections
import os
import sys
import threading

from . import program

ALONE = {"guest/test_congestion"}
# Memory of a lane: its shared VMs and those of a test with its own have more in total, and rarely use all of it
LANE_MEMORY = 8 << 30
MOST = 4
PATIENCE = 60                       # seconds for programs to end after a signal, and for VMs to shut down


def default():
    """Return the number of lanes for which there is room; kernels that check themselves get one lane."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 1 if program.IS_DEBUG else max(1, min(len(os.sched_getaffinity(0)), memory // LANE_MEMORY, MOST))


def guest_harness():
    os.environ["O"] = program.ENV["O"]
    sys.path.insert(0, os.path.join(program.HERE, "guest"))
    import harness                  # pylint: disable=import-outside-toplevel
    return harness


def needs_vms(path):
    """Return true for a guest test that uses shared VMs, unless the user named a lab."""
    return program.suite_of(path) == "guest" and program.name_of(path) not in ALONE and not program.ENV.get("ORNIC_TEST_LAB")


class NoGuests(Exception):
    """VMs do not start."""


class Lane(threading.Thread):
    def __init__(self, number, lanes):
        super().__init__()
        self.number, self.lanes = number, lanes
        self.lab = None
        # Instead of join() and is_alive(): if a signal interrupts join(), Python 3.11 takes the thread for ended
        self.over = threading.Event()

    def run(self):
        try:
            while path := self.lanes.take():
                self.run_one(path)
        except NoGuests as e:       # the other lanes continue
            self.lanes.give_back(path)
            self.lanes.failed("guest: %s" % e)
        finally:
            self.end_guests()
            self.over.set()

    def run_one(self, path):
        """Run one program; any other error is a failure of it."""
        try:
            env = {"ORNIC_TEST_LANE": str(self.number)}
            if needs_vms(path):
                env["ORNIC_TEST_LAB"] = self.guests()
            if self.lanes.stopped:
                return
            one = program.Program(path, env)
            one.wait(self.lanes.is_stopped)
            self.lanes.ended(one)
        except NoGuests:
            raise
        except Exception as e:      # pylint: disable=broad-except
            self.lanes.failed("%s: not run: %s: %s" % (program.name_of(path), type(e).__name__, e))

    def guests(self):
        """Return the name of the lab that the guest tests of the lane share; start a new one if one of them broke the last."""
        if self.lab and not (self.lab.daemons_alive() and all(vm.alive() for vm in self.lab.vms)):
            self.end_guests()
        if not self.lab:
            harness = guest_harness()
            try:
                self.lab = harness.start_lab(name="check-%d-%d" % (os.getpid(), self.number), nvdimm=harness.nvdimm(str(self.number)))
            except harness.LabError as e:
                raise NoGuests(e) from None
        return self.lab.name

    def end_guests(self):
        lab, self.lab = self.lab, None
        try:
            if lab:
                lab.down()
        except Exception as e:      # pylint: disable=broad-except
            self.lanes.failed("guest: %s: %s" % (type(e).__name__, e))


class Lanes:
    """Run programs in the order given, add up their points in count, and collect failures."""

    def __init__(self, number, verbose):
        self.number, self.verbose = number, verbose
        self.count = program.Count()
        self.failures = []          # a line for each
        self.left = collections.deque()
        self.lock = threading.Lock()
        self.stopped = False

    def run(self, paths):
        """Return when all have ended; an interrupt ends those that run."""
        lonely = [p for p in paths if self.is_lonely(p)]
        self.side_by_side([p for p in paths if p not in lonely], self.number)
        self.side_by_side(lonely, 1)

    @staticmethod
    def is_lonely(path):
        """Return true if it runs after the others, as do tests that share VMs that the user named."""
        return program.name_of(path) in ALONE or (program.suite_of(path) == "guest" and not needs_vms(path))

    def side_by_side(self, paths, number):
        self.left.extend(paths)
        lanes = [Lane(i, self) for i in range(min(number, len(paths)))]
        try:
            for lane in lanes:
                lane.start()
            for lane in lanes:
                lane.over.wait()
        except BaseException:
            self.stopped = True     # no program starts any more, and running ones get a signal
            for lane in lanes:
                if lane.ident:
                    lane.over.wait(PATIENCE)
            raise
        while path := self.take():  # every lane has failed
            self.failed("%s: not run" % program.name_of(path))

    # ---- for the lanes ----

    def is_stopped(self):
        return self.stopped

    def take(self):
        """Return the next program, or None."""
        with self.lock:
            return None if self.stopped or not self.left else self.left.popleft()

    def give_back(self, path):
        with self.lock:
            self.left.appendleft(path)

    def ended(self, one):
        with self.lock:
            if self.stopped:
                return
            self.count.add(one.count)
            self.failures += one.failures()
            print(one.report(self.verbose), flush=True)

    def failed(self, problem):
        """Record that a program could not run."""
        with self.lock:
            self.count.failed += 1
            self.failures.append("FAIL  %s" % problem)
            print(self.failures[-1], flush=True)
