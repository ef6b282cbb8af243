# SPDX-License-Identifier: GPL-2.0
"""unittest with TAP output, for selftests/run: call tap.main() where a script would call unittest.main()."""
import os
import sys
import time
import traceback
import unittest

LONG = 1                # seconds; longer tests print their time
UNITTEST = os.path.dirname(unittest.__file__) + os.sep


class Result(unittest.TestResult):
    """Print a TAP line for each test, and for each skipped or failed subtest."""

    def __init__(self):
        super().__init__()
        self.number = 0         # of the last TAP line
        self.failed = 0
        self.start = 0

    def startTest(self, test):
        super().startTest(test)
        self.start = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        seconds = time.monotonic() - self.start
        if seconds > LONG:
            print("# %.1f s" % seconds)
            sys.stdout.flush()

    def _print_line(self, test, passed, directive=""):
        self.number += 1
        self.failed += not passed
        print("%s %d - %s%s" % ("ok" if passed else "not ok", self.number, test.id().replace("__main__.", ""), directive))
        sys.stdout.flush()

    def _print_failure(self, test, err):
        """Print the reason first, so that tools which show only the first lines of a failure show it. Omit unittest's frames."""
        self._print_line(test, False)
        kind, reason, frames = err
        frames = [f for f in traceback.extract_tb(frames) if not f.filename.startswith(UNITTEST)]
        text = traceback.format_exception_only(kind, reason) + traceback.format_list(frames)
        if reason.__cause__:
            text += ["Caused by\n"] + traceback.format_exception(reason.__cause__)
        print("".join("# " + line + "\n" for line in "".join(text).splitlines()), end="")
        sys.stdout.flush()

    def addSuccess(self, test):
        self._print_line(test, True)

    def addFailure(self, test, err):
        self._print_failure(test, err)

    def addError(self, test, err):
        self._print_failure(test, err)

    def addSkip(self, test, reason):
        self._print_line(test, True, " # SKIP " + reason)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._print_failure(subtest, err)


def main(module="__main__", last=()):
    """
    Run the tests of a module, or only those named on the command line, and after them the tests in @last. Exit with 1 if a test
    failed.
    """
    names = sys.argv[1:]
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(names, sys.modules[module]) if names else \
        loader.loadTestsFromModule(sys.modules[module])
    suite.addTests(last)
    result = Result()
    suite.run(result)
    print("1..%d" % result.number)
    sys.exit(1 if result.failed else 0)
