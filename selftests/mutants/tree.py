# SPDX-License-Identifier: GPL-2.0
"""The copy of the tree in which mutants are built, and atomic writes of files."""
import filecmp
import hashlib
import os
import shutil

COPIED = ("Makefile", "Kbuild", "Kconfig", "include", "uapi", "tools", "selftests", "Documentation")
LEFT_OUT = ("__pycache__", ".git", "guest", "mutants", "kmod", "interop", "pyverbs")


def copy(top, to):
    """Bring a copy up to date. Unchanged files keep their times, so that make builds only changed ones."""
    wanted = set()
    for name in COPIED:
        path = os.path.join(top, name)
        found = [path] if os.path.isfile(path) else []
        for folder, below, files in os.walk(path):
            below[:] = [b for b in below if b not in LEFT_OUT]
            found += [os.path.join(folder, f) for f in files]
        for source in found:
            part = os.path.relpath(source, top)
            target = os.path.join(to, part)
            wanted.add(part)
            if os.path.isfile(source) and not (os.path.isfile(target) and filecmp.cmp(source, target, shallow=False)):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copyfile(source, target)
                shutil.copymode(source, target)
    for name in COPIED:
        for folder, _, files in os.walk(os.path.join(to, name)):
            for f in files:
                if os.path.relpath(os.path.join(folder, f), to) not in wanted:
                    os.remove(os.path.join(folder, f))


def stamp(paths):
    """Return a hash of the names and contents of files."""
    summed = hashlib.sha256()
    for path in sorted(paths):
        with open(path, "rb") as f:
            summed.update(os.path.basename(path).encode() + b"\0" + hashlib.sha256(f.read()).digest())
    return summed.hexdigest()[:16]


def write(path, text):
    """Write a file completely, or leave it unchanged."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".new", path)
