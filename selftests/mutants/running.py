# SPDX-License-Identifier: GPL-2.0
"""Run a test program with limits, because mutated code may hang, use all memory, or leave child processes behind."""
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time

# The thread that checks the limit of the sanitizers has thread data that glibc allocates. Where a test replaces calloc(), that is
# reported as a leak.
SUPPRESSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lsan.supp")
MEMORY = 8 << 30            # bytes of address space; the sanitizers reserve more, and have a limit of their own
FILE = 4 << 30


def limits(sanitized):
    def apply():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
        if not sanitized:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    return apply


def end(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def run(test, tree, library, seconds):
    """Run a test with the libraries of folder @library. Return the kind of failure, "" if it passed, and the time in seconds."""
    scratch = tempfile.mkdtemp(prefix="mut.")
    env = {**os.environ, **test.env, "LD_LIBRARY_PATH": library, "TMPDIR": scratch, "PYTHONDONTWRITEBYTECODE": "1",
           "ASAN_OPTIONS": "hard_rss_limit_mb=4096", "UBSAN_OPTIONS": "print_stacktrace=0",
           "LSAN_OPTIONS": "print_suppressions=0:suppressions=" + SUPPRESSIONS}
    start = time.monotonic()
    child = subprocess.Popen(test.argv, cwd=tree, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=limits(test.build != "plain"))
    try:
        status = child.wait(seconds)
        how = "" if status == 0 else "signal %d" % -status if status < 0 else "status %d" % status
    except subprocess.TimeoutExpired:
        how = "no end in %.0f s" % seconds
    finally:
        end(child)
        shutil.rmtree(scratch, ignore_errors=True)
    return how, time.monotonic() - start
