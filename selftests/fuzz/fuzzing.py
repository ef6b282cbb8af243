# SPDX-License-Identifier: GPL-2.0
"""Run the fuzz targets: seeds, folders, libFuzzer's options, and its output."""
import glob
import io
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("O", os.path.join(TOP, "build"))
WORK = os.path.join(BUILD, "fuzz")
MAX_LEN = 4096
ONE_INPUT = 120         # seconds for one input: on a busy machine, with sanitizers
SAN = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1:quarantine_size_mb=32", "UBSAN_OPTIONS": "print_stacktrace=1"}


def targets():
    """Return the names of the targets: packet for fuzz_packet.c"""
    return sorted(os.path.basename(p)[len("fuzz_"):-2] for p in glob.glob(os.path.join(HERE, "fuzz_*.c")))


def program(target):
    return os.path.join(BUILD, "selftests", "fuzz", "fuzz_" + target)


def seeds(target):
    return os.path.join(HERE, "corpus", target + ".tar.xz")


def corpus(target, fresh=False):
    """Return the folder of inputs that a run reads and extends, with the seeds in it."""
    folder = tempfile.mkdtemp(prefix="ornic-fuzz-") if fresh else os.path.join(WORK, "corpus", target)
    os.makedirs(folder, exist_ok=True)
    if os.path.exists(seeds(target)):
        with tarfile.open(seeds(target)) as tar:
            for member in tar.getmembers():
                with open(os.path.join(folder, os.path.basename(member.name)), "wb") as f:
                    f.write(tar.extractfile(member).read())
    return folder


def findings():
    folder = os.path.join(WORK, "findings")
    os.makedirs(folder, exist_ok=True)
    return folder


def command(target, *options):
    words = os.path.join(HERE, target + ".dict")
    return [program(target), "-max_len=%d" % MAX_LEN, "-timeout=%d" % ONE_INPUT, "-print_final_stats=1",
            "-artifact_prefix=%s/%s-" % (findings(), target),
            *(["-dict=" + words] if os.path.exists(words) else []), *options]


def run(target, *options, show=False):
    """Run a target. Return (exit status, output)."""
    env = {**os.environ, **SAN}
    child = subprocess.Popen(command(target, *options), cwd=TOP, env=env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    said = []
    for line in child.stdout:
        said.append(line)
        if show:
            sys.stdout.write(line)
            sys.stdout.flush()
    return child.wait(), "".join(said)


def cpu_seconds():
    """Return the processor time of all runs so far: on a busy machine it shows how long a run really ran."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def number(said, name):
    """Return a number of libFuzzer's last output, or of its last line of progress."""
    found = re.findall(r"%s:?\s+(\d+)" % re.escape(name), said)
    return int(found[-1]) if found else 0


def again(said):
    """Return the command that reproduces a finding, from the run's output; None if there is no finding."""
    found = re.search(r"Test unit written to (\S+)", said)
    if not found:
        return None
    path = found.group(1)
    target = os.path.basename(path).split("-")[0]
    return "%s %s" % (os.path.relpath(program(target), TOP), os.path.relpath(path, TOP))


def minimise(target):
    """Make the seeds the smallest set of inputs that reaches the same code as the corpus. Return their number and the archive's
    bytes."""
    small = tempfile.mkdtemp(prefix="ornic-fuzz-")
    try:
        status, said = run(target, "-merge=1", "-use_counters=0", small, corpus(target))
        if status:
            raise RuntimeError(said)
        os.makedirs(os.path.dirname(seeds(target)), exist_ok=True)
        names = sorted(os.listdir(small))
        with tarfile.open(seeds(target), "w:xz", preset=9) as tar:
            for name in names:
                with open(os.path.join(small, name), "rb") as f:
                    data = f.read()
                info = tarfile.TarInfo(name[:12])
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        return len(names), os.path.getsize(seeds(target))
    finally:
        shutil.rmtree(small)
