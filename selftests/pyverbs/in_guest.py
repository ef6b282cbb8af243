#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run rdma-core's tests in a guest: one process per test, one line of JSON per result.

  in_guest.py list TESTS MODULE...                names of all tests of these modules
  in_guest.py run TESTS DEV GID SECONDS SEED NAME...  runs them

Tests draw random attributes; with the same SEED a test draws the same ones, in any selection. A test that hangs ends after
SECONDS and reports where it was, a crash ends only that test, and objects that a test leaves open end with its process. A
result is {"name", "result": ok, skip, fail or error, "text", "seconds", "kernel": [messages that the kernel logged]}.
"""
import faulthandler
import json
import multiprocessing
import os
import random
import select
import signal
import sys
import tempfile
import time
import traceback
import types
import unittest

KERNEL_LINES = 60               # of a test; the rest is in dmesg


class Kernel:
    """The kernel's log messages from now on."""

    def __init__(self):
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.fd, 0, os.SEEK_END)

    def news(self):
        lines = []
        while True:
            try:
                record = os.read(self.fd, 8192).decode(errors="replace")
            except BlockingIOError:
                return lines[:KERNEL_LINES]
            except BrokenPipeError:             # the ring was overwritten; the next read continues with the remaining messages
                continue
            lines.append(record.split(";", 1)[-1].split("\n")[0])


class Outcome(unittest.TestResult):
    """The result of the one test that a process runs."""

    def __init__(self):
        super().__init__()
        self.result, self.text = "ok", ""

    def _set(self, result, text):
        if self.result in ("ok", "skip"):
            self.result, self.text = result, text

    def addSkip(self, test, reason):
        self._set("skip", reason)

    def addError(self, test, err):
        self._set("error", "".join(traceback.format_exception(*err)))

    def addFailure(self, test, err):
        self._set("fail", "".join(traceback.format_exception(*err)))

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.addFailure(subtest, err)

    def addUnexpectedSuccess(self, test):
        self._set("fail", "was expected to fail")


def prepare(folder, dev, gid):
    """Replace rdma-core's run_tests.py, whose package of all tests would also load the vendors' tests. Tests with several
    processes rely on fork, which is no longer Python's default from 3.14 on."""
    multiprocessing.set_start_method("fork")
    package = types.ModuleType("tests")
    package.__path__ = [folder]
    sys.modules["tests"] = package
    sys.path.insert(0, folder)
    from args_parser import parser
    sys.argv[1:] = ["--dev", dev, "--port", "1", "--gid", gid]
    parser.parse_args()


def load(modules):
    """Load all test cases of the modules by name, file.Class.test."""
    found = {}

    def add(suite):
        for test in suite:
            if isinstance(test, unittest.TestSuite):
                add(test)
            else:
                found[test.id().removeprefix("tests.")] = test
    for module in modules:
        add(unittest.defaultTestLoader.loadTestsFromName("tests." + module))
    return found


def send_slowly():
    """Wait after each send. The test (rdma-core 44) does not wait for the completions of its sends before it resizes the CQ, and
    expects an error because of them. On a loaded host the device has not written them yet."""
    from tests import utils
    send = utils.send

    def and_wait(*args, **kwargs):
        send(*args, **kwargs)
        time.sleep(0.3)
    utils.send = and_wait


def child(test, pipe, words, seed):
    """Run one test; never return."""
    os.setsid()
    os.dup2(words, 1)
    os.dup2(words, 2)
    faulthandler.enable(words)
    faulthandler.register(signal.SIGUSR1, words)
    outcome = Outcome()
    random.seed(test.id() + seed)
    if test.id() == "tests.test_cq.CQTest.test_resize_cq":
        send_slowly()
    test.run(outcome)
    sys.stdout.flush()
    os.write(pipe, json.dumps([outcome.result, outcome.text]).encode())
    os._exit(0)


def follow(pid, pipe, seconds):
    """Return the output of the child until it ended, None if that takes longer. Its own children may hold the pipe open, so end
    of file does not mark its end."""
    ended = os.pidfd_open(pid)
    os.set_blocking(pipe, False)
    data, watched, end = b"", [pipe, ended], time.monotonic() + seconds
    try:
        while (left := end - time.monotonic()) > 0:
            ready = select.select(watched, [], [], left)[0]
            if pipe in ready:
                more = os.read(pipe, 65536)
                data += more
                if not more:
                    watched.remove(pipe)
            elif ended in ready:
                return data
        return None
    finally:
        os.close(ended)


def run(test, seconds, seed):
    """Run one test in a separate process; return (result, text)."""
    with tempfile.TemporaryFile() as words:
        pipe, end = os.pipe()
        pid = os.fork()
        if not pid:
            child(test, end, words.fileno(), seed)
        os.close(end)
        said = follow(pid, pipe, seconds)
        os.close(pipe)
        if said is None:
            os.kill(pid, signal.SIGUSR1)
            time.sleep(1)
        kill_group(pid)
        _, status = os.waitpid(pid, 0)
        words.seek(0)
        output = words.read().decode(errors="replace")
    if said is None:
        return "error", "no end within %d s\n%s" % (seconds, output)
    if not said:
        return "error", "the test's process ended by %s\n%s" % (
            "signal %d" % os.WTERMSIG(status) if os.WIFSIGNALED(status) else "status %d" % os.WEXITSTATUS(status), output)
    result, text = json.loads(said)
    return result, text + output if result in ("fail", "error") else text


def kill_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def main():
    what, folder = sys.argv[1:3]
    if what == "list":
        modules = sys.argv[3:]
        prepare(folder, "", "0")
        print(json.dumps(sorted(load(modules))))
        return
    dev, gid, seconds, seed = sys.argv[3:7]
    names = sys.argv[7:]
    prepare(folder, dev, gid)
    tests = load({name.split(".")[0] for name in names})
    kernel = Kernel()
    for name in names:
        start = time.monotonic()
        result, text = run(tests[name], int(seconds), seed)
        print(json.dumps({"name": name, "result": result, "text": text, "seconds": round(time.monotonic() - start, 2),
                          "kernel": kernel.news()}), flush=True)


if __name__ == "__main__":
    main()
