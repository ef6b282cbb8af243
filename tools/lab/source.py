# SPDX-License-Identifier: GPL-2.0
"""Roots with the unpacked source of a Debian kernel or of rdma-core and the tools to build and check it, for the series.

Recipes are in tools/series/bases. The source is /usr/src/linux or /usr/src/rdma-core of the root. A command in it sees the
source with its own changes: an overlay in a folder of the checkout receives them.
"""
import os
import shlex
import tomllib

from . import build, debian, recipe
from .cache import Artefact
from .errors import LabError

BASES = os.path.join(build.CHECKOUT, "tools", "series", "bases")

UNPACK_LINUX = r"""set -e
cd /usr/src
tar -xf linux-source-*.tar.* --strip-components=1 --one-top-level=linux --exclude='*/drivers/gpu/drm/amd/include' ||
	{ echo "error: the kernel's source does not unpack" >&2; exit 1; }
rm linux-source-*.tar.*
"""
# A mirror may lack the .dsc or Debian's changes: the downloaded files are checked against the signed index.
UNPACK_RDMA_CORE = r"""set -e
cd /usr/src
apt-get update -q
apt-get source -q --only-source --download-only rdma-core || echo "not everything came, checking what did"
version=$(ls rdma-core_*.orig.tar.* | sed -n '1s/rdma-core_\(.*\)\.orig.*/\1/p')
apt-cache showsrc --only-source rdma-core | awk -v want="^$version-" '
	/^Version:/ { match_version = $2 ~ want }
	/^[A-Z]/ { sums = /^Checksums-Sha256:/ }
	match_version && sums && $3 ~ /\.tar\./ { print $1 "  " $3 }' | sort -u > sums
grep 'orig\.tar' sums | sha256sum -c || { echo "error: the mirror has no source of rdma-core" >&2; exit 1; }
mkdir rdma-core
tar -xf rdma-core_*.orig.tar.* -C rdma-core --strip-components=1
rm -rf rdma-core_* sums /var/lib/apt/lists/*
"""


def bases():
    return sorted(n[:-5] for n in os.listdir(BASES) if n.endswith(".toml"))


def load(name):
    try:
        with open(os.path.join(BASES, name + ".toml"), "rb") as f:
            return tomllib.load(f)
    except FileNotFoundError:
        raise LabError("no base '%s'; there are: %s" % (name, ", ".join(bases()))) from None


def artefact(name):
    b = load(name)
    unpack = UNPACK_LINUX if b["kind"] == "linux" else UNPACK_RDMA_CORE

    def make(path, step):
        hook = 'chroot "$1" ' + shlex.join(["sh", "-c", unpack])
        debian.make_root(path, b["suites"], b["packages"], a.log(), step, source=b["kind"] != "linux", hooks=[hook])
    a = Artefact("source-" + name, recipe.text(b, unpack), make, "source of " + name, b["space_mib"])
    return a


def tree(name):
    """Return the path of the unchanged source."""
    return os.path.join(artefact(name).get(), "usr", "src", load(name)["kind"])


def run(name, changes, command, checkout):
    """Replace this process with command, run in the root; its changes of the source go to the folder changes."""
    upper, work = os.path.join(changes, "upper"), os.path.join(changes, "work")
    for folder in (upper, work):
        os.makedirs(folder, exist_ok=True)
    overlay = [tree(name), upper, work, "/usr/src/" + load(name)["kind"]]
    build.enter(artefact(name).get(), checkout, command, overlay=overlay)
