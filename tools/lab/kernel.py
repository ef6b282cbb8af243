# SPDX-License-Identifier: GPL-2.0
"""A lab-built kernel, for guests whose recipe has a [kernel]: Debian's source, our configuration recipes/NAME.config.

The artefact holds vmlinuz, release, and modules/RELEASE, what belongs into /lib/modules of a guest and of the build root:
module lists for depmod's users, and in build/ all that modules from outside the tree are made with. Options that are not named
in the configuration are off; one that is named and does not come out so ends the build, because a checker that is silently
missing would let tests pass.
"""
import os
import shlex
import shutil

from . import debian, recipe
from .cache import Artefact

# Runs in a root with compilers and the source's package; $1 is the configuration, $2 the text to add to init/Kconfig, then come
# pairs of a file and a sed program for it.
BUILD = r"""set -e
export KBUILD_BUILD_USER=lab KBUILD_BUILD_HOST=ornic
mkdir -p /out/modules
cd /usr/src
tar -xf linux-source-*.tar.* --strip-components=1 --one-top-level=linux \
	--exclude='*/drivers/gpu/drm/amd/include' --exclude='*/tools/testing' ||
	{ echo "error: the kernel's source does not unpack" >&2; exit 1; }
cd linux
printf '%s\n' "$1" > /out/config
printf '%s\n' "$2" >> init/Kconfig
shift 2
while [ $# -gt 0 ]; do
	cp "$1" /tmp/before
	sed -i "$2" "$1"
	! cmp -s /tmp/before "$1" || { echo "error: nothing to edit in the kernel's $1" >&2; exit 1; }
	shift 2
done
make -s KCONFIG_ALLCONFIG=/out/config allnoconfig || { echo "error: the kernel does not configure" >&2; exit 1; }
lost=$(grep -E '^(# )?CONFIG_' /out/config | grep -vxFf .config | tr '\n' ' ')
[ -z "$lost" ] || { echo "error: the kernel cannot have $lost" >&2; exit 1; }
make -j$(nproc) bzImage modules || { echo "error: the kernel does not build" >&2; exit 1; }
make -s kernelrelease > /out/release
release=$(cat /out/release)
make -s modules_install INSTALL_MOD_PATH=/usr/src/staging
mv /usr/src/staging/lib/modules/$release /out/modules/
cp arch/x86/boot/bzImage /out/vmlinuz
rm -f /out/modules/$release/build
make -s run-command KBUILD_RUN_COMMAND='sh $(srctree)/scripts/package/install-extmod-build '/out/modules/$release/build
cp .config /out/modules/$release/build/
rm -rf /usr/src/linux /usr/src/staging
"""


def artefact(name):
    k = recipe.load(name)["kernel"]
    with open(os.path.join(recipe.FOLDER, name + ".config")) as f:
        config = f.read()

    def build(path, step):
        root = os.path.join(path, "root")
        edits = [word for pair in k["edits"] for word in pair]
        hook = 'chroot "$1" ' + shlex.join(["sh", "-c", BUILD, "sh", config, k["kconfig"], *edits])
        debian.make_root(root, k["suites"], k["packages"] + [k["source"]], a.log(), step, hooks=[hook])
        for entry in os.scandir(os.path.join(root, "out")):
            os.rename(entry.path, os.path.join(path, entry.name))
        shutil.rmtree(root)
    a = Artefact("kernel-" + name, recipe.text(k, config, BUILD), build, "kernel of " + name, k["space_mib"])
    return a


def modules(name):
    """Return the folder that a guest of this recipe has as /lib/modules, None if its kernel comes from a package."""
    return os.path.join(artefact(name).get(), "modules") if "kernel" in recipe.load(name) else None
