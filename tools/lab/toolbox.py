# SPDX-License-Identifier: GPL-2.0
"""QEMU and the image maker in a separate root, run by that root's loader: no chroot, no privileges.

A host that is older than its guests has no QEMU with vfio-user-pci, and its C library is too old for a newer package. A program
of the toolbox starts through the dynamic loader of its own root, so it finds that root's libraries. It needs no chroot, so the file
names on its command line are those of the host.
"""
import os
import re
import subprocess

from . import debian, recipe
from .cache import Artefact
from .errors import LabError

LIB = "usr/lib/x86_64-linux-gnu"
QEMU_MINIMUM = (11, 1)          # the first version that ornic was tested with. 10.0 has no vfio-user-pci; Debian has none in between


def artefact():
    r = recipe.load("toolbox")

    def build(path, step):
        debian.make_root(path, r["suites"], r["packages"], a.log(), step)
    a = Artefact("toolbox", recipe.text(r), build, "toolbox (QEMU, image tools)", r["space_mib"])
    return a


def command(name):
    """Return the argv prefix that runs a program of the toolbox."""
    root = artefact().get()
    for folder in ("usr/bin", "usr/sbin"):
        program = os.path.join(root, folder, name)
        if os.path.exists(program):
            lib = os.path.join(root, LIB)
            return [lib + "/ld-linux-x86-64.so.2", "--library-path", lib, program]
    raise LabError("the toolbox has no %s; its recipe is tools/lab/recipes/toolbox.toml" % name)


def qemu():
    """Return (argv prefix, environment) of a QEMU that can attach a vfio-user device. $ORNIC_QEMU overrides."""
    own = os.environ.get("ORNIC_QEMU")
    if own is not None:
        argv = own.split()
        if not argv:
            raise LabError("ORNIC_QEMU is empty: name a QEMU or unset it")
        check_version(argv, {}, own)
        if subprocess.run(argv + ["-device", "vfio-user-pci,help"], capture_output=True).returncode:
            raise LabError("%s was built without vfio-user-pci: name another in ORNIC_QEMU or unset it" % own)
        return argv, {}
    root = artefact().get()
    argv = command("qemu-system-x86_64")
    for folder in ("qemu", "seabios"):      # where it was built to look for firmware, this host has none or another version
        argv += ["-L", os.path.join(root, "usr/share", folder)]
    env = {"QEMU_MODULE_DIR": os.path.join(root, LIB, "qemu")}     # likewise for its modules
    check_version(argv, env, "of the toolbox")
    return argv, env


def check_version(argv, env, name):
    try:
        done = subprocess.run(argv + ["--version"], capture_output=True, text=True, env={**os.environ, **env})
    except OSError as e:
        raise LabError("cannot run QEMU %s: %s" % (name, e.strerror)) from None
    found = re.search(r"version (\d+)\.(\d+)", done.stdout)
    if not found:
        raise LabError(("QEMU %s does not say its version: not a QEMU? %s" % (name, done.stderr)).strip())
    if tuple(map(int, found.groups())) < QEMU_MINIMUM:
        raise LabError("QEMU %s.%s is too old: %d.%d or newer is needed (unset ORNIC_QEMU?)" % (*found.groups(), *QEMU_MINIMUM))
