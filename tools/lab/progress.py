# SPDX-License-Identifier: GPL-2.0
"""Show that a long step is alive: a line that counts seconds on a terminal, a few lines in a log."""
import sys
import threading
import time

LOG_PERIOD = 15         # seconds between lines when the output is not a terminal


class Step:
    """Context manager around a long step. note() sets a short remark shown behind the clock."""

    def __init__(self, what, stream=None):
        self.what = what
        self.stream = stream or sys.stderr
        self.remark = ""
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._tick, daemon=True)

    def note(self, remark):
        self.remark = remark

    def _show(self, end, final=""):
        seconds = time.monotonic() - self.start
        tail = final or self.remark
        line = "lab: %s … %d s%s" % (self.what, seconds, "  " + tail[:60] if tail else "")
        if self.stream.isatty():
            self.stream.write("\r\x1b[K" + line + ("\n" if end else ""))
        else:
            self.stream.write(line + "\n")
        self.stream.flush()

    def _tick(self):
        tty = self.stream.isatty()
        while not self.done.wait(1 if tty else LOG_PERIOD):
            self._show(False)

    def __enter__(self):
        self.start = time.monotonic()
        self._show(False)
        self.thread.start()
        return self

    def __exit__(self, kind, value, trace):
        self.done.set()
        self.thread.join()
        self._show(True, "failed" if kind else "done")


def say(text):
    """Print one line of the lab to the user."""
    sys.stderr.write("lab: %s\n" % text)
    sys.stderr.flush()
