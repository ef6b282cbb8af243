# SPDX-License-Identifier: GPL-2.0
"""Guest images: a read-only erofs root shared by all VMs, a kernel, and the modules that find the root.

An image is a directory: root.erofs, vmlinuz, boot.cpio (busybox and the boot modules; the lab appends its own
files to it when a VM starts), release (kernel version), packages (what is installed). A guest whose recipe has a base
shares that one's root.erofs; its own kernel's modules travel in boot.cpio instead.
"""
import lzma
import os
import re
import shutil
import subprocess

from . import debian, kernel, recipe, toolbox
from .cache import Artefact
from .cpio import Archive
from .errors import LabError

LAYOUT = 2                      # part of an image's key: increment it when pack() makes a different image of the same recipe


class Image:
    """An image in the cache."""

    def __init__(self, path):
        self.path = path
        with open(os.path.join(path, "release")) as f:
            self.release = f.read().strip()

    def file(self, name):
        return os.path.join(self.path, name)


def artefact(name):
    r = recipe.load(name)
    if "base" in r:
        return derived(name, r["base"])
    im = r["image"]

    def build(path, step):
        root = os.path.join(path, "root")
        debian.make_root(root, r["suites"], [im["kernel"]] + im["packages"], a.log(), step)
        step.note("packing")
        pack(root, path, im["boot_modules"])
        shutil.rmtree(root)
    a = Artefact("guest-" + name, recipe.text(LAYOUT, r["suites"], im), build, "guest image " + name, im["space_mib"])
    return a


def derived(name, base):
    """Return the image of a guest that is another one with a lab-built kernel."""
    below, own = artefact(base), kernel.artefact(name)

    def build(path, step):
        source, kern = below.get(), own.get()
        for folder, file in ((source, "root.erofs"), (source, "packages"), (kern, "vmlinuz"), (kern, "release")):
            os.link(os.path.join(folder, file), os.path.join(path, file))
        with open(os.path.join(path, "boot.cpio"), "wb") as f:
            write_derived_boot(Archive(f), os.path.join(source, "root.erofs"), os.path.join(kern, "modules"))
    return Artefact("guest-" + name, recipe.text(LAYOUT, below.path, own.path), build, "guest image " + name, 100)


def get(name):
    """Return the guest image; build it if it is missing."""
    toolbox.artefact().get()
    return Image(artefact(name).get())


class WithKernel(Image):
    """A guest image with another kernel: a folder that holds vmlinuz, release, and modules/RELEASE; boot.cpio is added to it."""

    def __init__(self, below, folder):
        super().__init__(folder)
        self.below = below
        with open(self.file("boot.cpio"), "wb") as f:
            write_derived_boot(Archive(f), below.file("root.erofs"), self.file("modules"))

    def file(self, name):
        return self.below.file(name) if name == "root.erofs" else super().file(name)


def pack(root, path, boot_modules):
    releases = os.listdir(os.path.join(root, "lib/modules"))
    if len(releases) != 1:
        raise LabError("the recipe installs %d kernels, an image has one" % len(releases))
    release = releases[0]
    shutil.copy(os.path.join(root, "boot/vmlinuz-" + release), os.path.join(path, "vmlinuz"))
    with open(os.path.join(path, "boot.cpio"), "wb") as f:
        write_boot(Archive(f), root, release, boot_modules)
    listing = subprocess.run(["dpkg-query", "--admindir=" + os.path.join(root, "var/lib/dpkg"), "-W"],
                             capture_output=True, check=True).stdout
    with open(os.path.join(path, "packages"), "wb") as f:
        f.write(listing)
    with open(os.path.join(path, "release"), "w") as f:
        f.write(release + "\n")
    # Files keep their times. Python ignores a .pyc that names another time of its source: a guest would compile its library
    # at each start, a third of the boot time.
    done = subprocess.run(toolbox.command("mkfs.erofs") + [
        "--quiet", "--exclude-path=var/cache/apt", "--exclude-path=var/lib/apt/lists",
        "--exclude-regex=^boot/", os.path.join(path, "root.erofs"), root], capture_output=True, text=True)
    if done.returncode:
        raise LabError("mkfs.erofs: " + (done.stderr or done.stdout).strip()[-200:])


def write_boot(archive, root, release, wanted):
    with open(os.path.join(root, "bin/busybox"), "rb") as f:
        write_first_stage(archive, f.read())
    for number, path in enumerate(load_order(os.path.join(root, "lib/modules", release), wanted)):
        name = re.sub(r"\.xz$", "", os.path.basename(path))
        archive.file("mod/%02d-%s" % (number, name), read_module(path))
    archive.close()


def write_first_stage(archive, busybox):
    for folder in ("dev", "proc", "sys", "ro", "rw", "new", "mod"):
        archive.folder(folder)
    archive.file("bin/busybox", busybox, 0o755)


def write_derived_boot(archive, erofs, modules):
    """Write the boot archive for a kernel with built-in boot drivers. It puts /modules over the root's /lib/modules."""
    done = subprocess.run(toolbox.command("dump.erofs") + ["--cat", "--path=/usr/bin/busybox", erofs], capture_output=True)
    if not done.stdout.startswith(b"\x7fELF"):
        raise LabError("dump.erofs: no busybox in %s: %s" % (erofs, done.stderr.decode(errors="replace").strip()[-200:]))
    write_first_stage(archive, done.stdout)
    for folder, below, files in os.walk(modules):
        if "build" in below:
            below.remove("build")
        for name in files:
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                archive.file(os.path.join("modules", os.path.relpath(path, modules)), f.read())
    archive.close()


def read_module(path):
    with (lzma.open if path.endswith(".xz") else open)(path, "rb") as f:
        return f.read()


def load_order(base, wanted):
    """Return the paths of the wanted modules and their dependencies, in an order that insmod accepts; built-in ones are absent."""
    deps = {}
    with open(os.path.join(base, "modules.dep")) as f:
        for line in f:
            path, needs = line.rstrip("\n").split(":")
            deps[path] = needs.split()
    by_name = {re.sub(r"\.ko.*", "", os.path.basename(p)).replace("-", "_"): p for p in deps}
    order = []

    def add(path):
        for need in deps[path]:
            add(need)
        if path not in order:
            order.append(path)
    for name in wanted:
        if name in by_name:
            add(by_name[name])
    return [os.path.join(base, p) for p in order]
