# SPDX-License-Identifier: GPL-2.0
"""Files that passed a check, remembered in $ORNIC_CACHE by the hash of all that the result depends on.

For slow checks of single files, whose result is the same as long as file, tool and options are. Only passes are remembered, so a
failure is shown each time.
"""
import contextlib
import hashlib
import os
import time

UNUSED_DAYS = 30


class Passed:
    """kind names the check; inputs are texts that the result depends on, besides a file's name and content."""

    def __init__(self, cache, kind, *inputs):
        self.folder = os.path.join(cache, "passed-" + kind)
        self.inputs = hashlib.sha256("\0".join(inputs).encode()).hexdigest()
        with contextlib.suppress(OSError):      # a user who may not write the cache does without
            os.makedirs(self.folder, exist_ok=True)
            limit = time.time() - UNUSED_DAYS * 86400
            for entry in os.scandir(self.folder):
                if entry.stat().st_mtime < limit:
                    os.unlink(entry.path)

    def entry(self, path, name):
        """Return the place of the result for the file at path, which the check sees as name, as it is now."""
        with open(path, "rb") as f:
            content = hashlib.sha256(f.read()).hexdigest()
        return os.path.join(self.folder, hashlib.sha256("\0".join((self.inputs, name, content)).encode()).hexdigest())

    @staticmethod
    def has(entry):
        try:
            os.utime(entry)
        except OSError:
            return False
        return True

    @staticmethod
    def add(entry):
        """Record a pass; entry is from before the check, because a file may change meanwhile."""
        with contextlib.suppress(OSError), open(entry, "wb"):
            pass
