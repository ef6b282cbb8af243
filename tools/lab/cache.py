# SPDX-License-Identifier: GPL-2.0
"""Artefacts that are made once: a directory per (kind, recipe), outside the checkout.

An artefact's directory is $ORNIC_CACHE/<kind>-<hash of its recipe>. It is made as <...>.new and renamed when it is complete, so
a directory with its final name is whole. A lock per kind keeps two builders apart; the second one waits and then finds the
first one's result. The next builder removes the rest of an interrupted build. Nothing here knows the content of an artefact.

Several checkouts share a cache, each with its own recipes, so an artefact that this checkout does not use may be needed by
another one. Its modification time is the time of its last use, and only artefacts that were long unused are pruned.
"""
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import time

from .errors import LabError
from .progress import Step, say


UNUSED_DAYS = 14
UNFINISHED = (".new", ".gone")  # ends of the names of directories that are being made or removed


def root():
    return os.environ.get("ORNIC_CACHE", "/var/cache/ornic")


class Artefact:
    """kind names it, recipe is all the text its content depends on, build(directory, step) makes it."""

    def __init__(self, kind, recipe, build, label, space_mib):
        self.kind = kind
        self.build = build
        self.label = label
        self.space_mib = space_mib
        digest = hashlib.sha256(recipe.encode()).hexdigest()[:12]
        self.path = os.path.join(root(), "%s-%s" % (kind, digest))

    def exists(self):
        return os.path.isdir(self.path)

    def get(self):
        """Return the path of the artefact; build it if it is missing."""
        if not self.exists():
            prepare_root()
            with locked(self.kind, self.label):
                if not self.exists():
                    self._make()
        with contextlib.suppress(OSError):      # a user who may only read the cache cannot record the use
            os.utime(self.path)
        return self.path

    def _make(self):
        if os.geteuid() != 0:
            raise LabError("%s must be built once as root: run 'sudo tools/lab/lab build'" % self.label)
        for path in self.siblings():
            if path.endswith(UNFINISHED):
                with contextlib.suppress(OSError):      # only our own leftover would stop this build
                    discard(path)
        new = self.path + ".new"
        check_space(self.space_mib, self.label)
        os.mkdir(new)
        try:
            with Step(self.label) as step:
                self.build(new, step)
            os.rename(new, self.path)
        except BaseException:
            discard(new)
            raise

    def log(self):
        """Return the log file for the output of build()'s programs."""
        return os.path.join(root(), self.kind + ".log")

    def siblings(self):
        """Return artefacts of the same kind made from other recipes, and unfinished ones."""
        ours = re.compile(re.escape(self.kind) + r"-[0-9a-f]{12}(\.new|\.gone)*")
        paths = [os.path.join(root(), n) for n in sorted(os.listdir(root())) if ours.fullmatch(n)]
        return [p for p in paths if p != self.path]

    def remove(self):
        """Remove this artefact; others of its kind stay."""
        if self.exists():
            with locked(self.kind, self.label):
                discard(self.path)

    def prune(self):
        """Remove artefacts of the same kind that no checkout has used in UNUSED_DAYS; return their paths."""
        limit = time.time() - UNUSED_DAYS * 86400
        with locked(self.kind, self.label):
            gone = [p for p in self.siblings() if os.stat(p).st_mtime < limit]
            for path in gone:
                discard(path)
        return gone


def is_artefact(path):
    """Return true for an artefact, complete or not; other folders of the cache grow and shrink by themselves."""
    return re.search(r"-[0-9a-f]{12}(\.new|\.gone)*$", path) is not None


def prepare_root():
    try:
        os.makedirs(root(), exist_ok=True)
    except OSError as e:
        raise LabError("cannot make the cache directory %s (%s): run as root or set ORNIC_CACHE"
                       % (root(), e.strerror)) from None


@contextlib.contextmanager
def locked(kind, label):
    path = os.path.join(root(), kind + ".lock")
    try:
        lock = open(path, "w")
    except OSError as e:
        raise LabError("cannot write %s (%s): %s must be built once as root" % (path, e.strerror, label)) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("%s is being built by another process, waiting" % label)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def check_space(mib, label):
    free = shutil.disk_usage(root()).free >> 20
    if free < mib:
        raise LabError("%s needs %d MiB in %s, %d MiB are free: free some, or set ORNIC_CACHE, "
                       "or drop old artefacts with 'lab cache --prune'" % (label, mib, root(), free))


def discard(path):
    """Rename a tree before removing it, so that no process sees it half removed."""
    if not os.path.lexists(path):
        return
    gone = path + ".gone"
    shutil.rmtree(gone, ignore_errors=True)
    os.rename(path, gone)
    shutil.rmtree(gone, ignore_errors=True)


def size_mib(path):
    blocks = 0
    for folder, _, files in os.walk(path):
        for name in files:
            with contextlib.suppress(OSError):
                blocks += os.lstat(os.path.join(folder, name)).st_blocks
    return blocks >> 11
