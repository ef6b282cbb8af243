# SPDX-License-Identifier: GPL-2.0
"""Driver and provider as files that travel into a VM with its initramfs."""
import glob
import os
import re

from .build import CHECKOUT
from .errors import LabError

MODULES = ("ornic.ko", "ornic_ib.ko")


def default_folder(guest):
    """Return the folder of the build's files for a guest of this release."""
    return os.path.join(CHECKOUT, "build", "guest", guest)


def find(config, guest, release):
    """Return the files to send into a VM with a device, checked against the kernel release of its guest."""
    folder = default_folder(guest)
    return modules(config.modules or folder, release) + provider(config.provider or folder)


def modules(folder, release):
    found = []
    for name in MODULES:
        found += glob.glob(os.path.join(folder, name))
    if not found:
        raise LabError("no ornic.ko in %s: build the driver for the guest (make), name its folder with --modules, "
                       "or use --device none" % folder)
    for path in found:
        check_release(path, release)
    return found


def check_release(path, release):
    """Reject a module for another kernel, because the guest's message would be less helpful."""
    with open(path, "rb") as f:
        magic = re.search(rb"\0vermagic=(\S+)", f.read())
    if not magic:
        raise LabError("%s is not a kernel module" % path)
    if magic.group(1).decode() != release:
        raise LabError("%s is for kernel %s, the guest runs %s: make clean, then make"
                       % (path, magic.group(1).decode(), release))


def provider(folder):
    return glob.glob(os.path.join(folder, "libornic-rdmav*.so")) + glob.glob(os.path.join(folder, "ornic.driver"))
