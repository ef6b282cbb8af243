# SPDX-License-Identifier: GPL-2.0
"""QEMU and the image maker in a separate root, run by that root's loader: no chroot, no privileges.

A host that is older than its guests has no QEMU with vfio-user-pci; its C library is too old for a newer package. Starting the
program through the dynamic loader it was linked for avoids both, and file names stay the host's.
"""
import os
import re
import subprocess

from . import debian, recipe
from .cache import Artefact
from .errors import LabError

LIB = "usr/lib/x86_64-linux-gnu"
QEMU_MINIMUM = (11, 1)


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
            return [lib + "/ld-linux-x86-64.so.2", "--library-path", lib + ":" + lib + "/pulseaudio", program]
    raise LabError("the toolbox has no %s; its recipe is guests/toolbox.toml" % name)


def qemu():
    """Return (argv prefix, environment) of a QEMU that can attach a vfio-user device. $ORNIC_QEMU overrides."""
    own = os.environ.get("ORNIC_QEMU")
    if own is not None:
        argv, env = own.split(), {}
        if not argv:
            raise LabError("ORNIC_QEMU is empty: name a QEMU or unset it")
    else:
        root = artefact().get()
        argv = command("qemu-system-x86_64")
        for folder in ("qemu", "seabios"):
            argv += ["-L", os.path.join(root, "usr/share", folder)]
        env = {"QEMU_MODULE_DIR": os.path.join(root, LIB, "qemu")}
    check_qemu(argv, env)
    return argv, env


def check_qemu(argv, env):
    try:
        out = subprocess.run(argv + ["--version"], capture_output=True, text=True, env={**os.environ, **env}).stdout
    except OSError as e:
        raise LabError("cannot run QEMU %s: %s" % (argv[0], e.strerror)) from None
    found = re.search(r"version (\d+)\.(\d+)", out)
    if not found:
        raise LabError("%s does not say its version: not a QEMU?" % argv[-1])
    if tuple(map(int, found.groups())) < QEMU_MINIMUM:
        raise LabError("QEMU %s.%s is too old for vfio-user-pci: %d.%d or newer is needed (unset ORNIC_QEMU?)"
                       % (*found.groups(), *QEMU_MINIMUM))
    if argv == (os.environ.get("ORNIC_QEMU") or "").split():
        has = subprocess.run(argv + ["-device", "vfio-user-pci,help"], capture_output=True)
        if has.returncode:
            raise LabError("%s was built without vfio-user-pci: name another in ORNIC_QEMU or unset it" % argv[-1])
