# SPDX-License-Identifier: GPL-2.0
"""Write newc cpio archives, the initramfs format; archives may simply be concatenated."""
import os


class Archive:
    """Entries are owned by root; parent directories are added on the way."""

    def __init__(self, stream):
        self.stream = stream
        self.inode = 0
        self.folders = set()

    def _entry(self, name, mode, data=b""):
        self.inode += 1
        raw = name.encode() + b"\0"
        fields = (self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0)
        self._padded(b"070701" + b"".join(b"%08x" % f for f in fields) + raw)
        self._padded(data)

    def _padded(self, data):
        self.stream.write(data + bytes(-len(data) % 4))

    def folder(self, name):
        if name and name not in self.folders:
            self.folder(os.path.dirname(name))
            self.folders.add(name)
            self._entry(name, 0o040755)

    def file(self, name, data, mode=0o644):
        self.folder(os.path.dirname(name))
        self._entry(name, 0o100000 | mode, data)

    def close(self):
        self._entry("TRAILER!!!", 0)
