# SPDX-License-Identifier: GPL-2.0
"""The build root of a guest release: compilers, the guest kernel's headers, a configured rdma-core.

Inside it /lib/modules/RELEASE/build are the kernel's headers, /usr/src/rdma-core the source tree of the provider (headers in
build/include), /usr/src/pyverbs-tests the tests of the guest's pyverbs, /usr/src/checkpatch the kernel's checkpatch.pl with its
word lists and kernel-doc (unless the recipe says checkpatch = false). A guest with a base uses the base's build root, in which
a command then sees the modules folder of the guest's own kernel.

Programs that are built in it fit the guest, for any release of the host. A command sees the checkout at the same absolute path
as outside; the root itself is read-only to it, /tmp is private, and everything that is mounted for the command lives in its own
mount namespace, so nothing stays mounted when it ends, in any way.

The compilers are behind ccache, with its files in $ORNIC_CACHE/ccache: a new checkout compiles what differs from others.
"""
import os
import shlex

from . import cache, debian, image, kernel, recipe
from .cache import Artefact
from .errors import LabError

CHECKOUT = os.path.realpath(os.path.join(recipe.HERE, "..", ".."))
DROPPED = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "CC", "TMPDIR", "CCACHE_DIR",
           "CCACHE_CONFIGPATH")
# CCACHE_DEPEND: the compiler's list of headers instead of a run of the preprocessor, so that a miss costs little
CCACHE = {"CCACHE_DIR": "/var/cache/ccache", "CCACHE_MAXSIZE": "2G", "CCACHE_DEPEND": "1"}

# Runs in the new root at the end of its creation. Its arguments are pairs of a version of rdma-core and the suite that has it; it
# takes the first one whose source is on the mirror. It unpacks the source from the two tarballs whose checksums are in the signed
# index. So it needs neither the .dsc nor Debian's changes, which a mirror may lack. The tests come from the guest's version of
# the package, because only that fits its pyverbs.
CONFIGURE = r"""set -e
mkdir /usr/src/fetch /usr/src/pyverbs-tests
cd /usr/src/fetch
uri=$(awk '$1 == "deb-src" { print $2; exit }' /etc/apt/sources.list)
fetch() {
	echo "deb-src $uri $2 main" > /etc/apt/sources.list.d/rdma-core.list
	apt-get update -q
	apt-get source -q --only-source --download-only rdma-core/$2 || echo "not everything came, checking what did"
	apt-cache showsrc --only-source rdma-core | awk -v want="^$1-" '
		/^Version:/ { match_version = $2 ~ want }
		/^[A-Z]/ { sums = /^Checksums-Sha256:/ }
		match_version && sums && $3 ~ /\.tar\./ { print $1 "  " $3 }' | sort -u > sums
	grep 'orig\.tar' sums | sha256sum -c
}
apt-get update -q
apt-get download -q python3-pyverbs
dpkg-deb --fsys-tarfile python3-pyverbs_*.deb | tar -x -C ../pyverbs-tests --strip-components=6 ./usr/share/doc/rdma-core/tests
gunzip ../pyverbs-tests/*.gz
wanted=$*
until fetch $1 $2; do
	shift 2
	[ $# -gt 0 ] || { echo "error: the mirror has no source of rdma-core $wanted" >&2; exit 1; }
	rm -f rdma-core_*
done
mkdir ../rdma-core
tar -xf rdma-core_*.orig.tar.* -C ../rdma-core --strip-components=1
if grep 'debian\.tar' sums | sha256sum -c; then
	tar -xf rdma-core_*.debian.tar.* -C ../rdma-core
else
	echo "the mirror lacks Debian's changes to rdma-core, going on without"
fi
cd ../rdma-core
rm -r ../fetch /etc/apt/sources.list.d/rdma-core.list
if [ -e debian/patches/series ]; then
	for p in $(grep -v '^#' debian/patches/series); do patch -s -p1 < debian/patches/$p; done
fi
cmake -S . -B build -GNinja -DNO_PYVERBS=1 -DNO_MAN_PAGES=1 -DCMAKE_BUILD_TYPE=Release ||
	{ echo "error: rdma-core does not configure" >&2; exit 1; }
ninja -C build kern-abi util/librdma_util_pic.a ccan/libccan_pic.a || { echo "error: rdma-core does not build" >&2; exit 1; }
# should the source be another version than the guest's: what applications see is in the layout of what providers see
for h in /usr/include/infiniband/*.h; do
	own=build/include/infiniband/${h##*/}
	[ ! -e $own ] || cmp -s $h $own || ln -sf $h $own
done
rm -rf /var/lib/apt/lists/*
"""
# The same for the guest whose kernel defines the style rules.
CHECKPATCH = r"""cd /usr/src
tar -xf linux-source-*.tar.xz --strip-components=2 --one-top-level=checkpatch --occurrence=1 --wildcards \
	'*/scripts/checkpatch.pl' '*/scripts/spelling.txt' '*/scripts/const_structs.checkpatch' '*/scripts/kernel-doc'
rm linux-source-*.tar.xz
"""


def artefact(name):
    r = recipe.load(name)
    if "base" in r:
        return artefact(r["base"])
    b = r["buildroot"]
    release = image.get(name).release
    style = b.get("checkpatch", True)
    configure = CONFIGURE + (CHECKPATCH if style else "")

    def build(path, step):
        packages = b["packages"] + ["linux-headers-" + release]
        packages += ["linux-source-" + ".".join(release.split(".")[:2])] if style else []
        hook = 'chroot "$1" ' + shlex.join(["sh", "-c", configure, "sh", *b["rdma_core"]])
        debian.make_root(path, r["suites"], packages, a.log(), step, source=True, hooks=[hook])
        if not os.path.isdir(os.path.join(path, "usr/src/linux-headers-" + release)):
            raise LabError("the build root has no headers for the guest's kernel " + release)
    a = Artefact("buildroot-" + name, recipe.text(r["suites"], b, release, configure), build, "build root " + name,
                 b["space_mib"])
    return a


def run(name, command, checkout):
    """Replace this process with command, run in the build root of guest release name; it sees and may change checkout."""
    enter(artefact(name).get(), checkout, command, modules=kernel.modules(name) or "", ORNIC_BUILDROOT=name)


def enter(root, checkout, command, modules="", overlay=("", "", "", ""), **variables):
    """Replace this process with command, run in a root; overlay: lower, upper and work folder, and its mount point."""
    if not os.path.isdir(checkout):
        raise LabError("no folder %s" % checkout)
    cwd = os.getcwd()
    inside = os.path.realpath(cwd)
    if os.path.commonpath([inside, checkout]) != checkout:
        inside = checkout
    namespace = ["unshare", "--mount", "--propagation", "private"]
    if os.geteuid() != 0:
        namespace.append("--map-root-user")
    env = {k: v for k, v in os.environ.items() if k not in DROPPED}
    env.update(PATH="/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root", LANG="C.UTF-8", LC_ALL="C.UTF-8",
               **CCACHE, **variables)
    compiled = compiled_folder()
    if not compiled:
        env["CCACHE_DISABLE"] = "1"
    argv = namespace + ["sh", "-c", ENTER, "sh", root, checkout, inside, modules, compiled, *overlay] + list(command)
    try:
        os.execvpe(argv[0], argv, env)
    except FileNotFoundError:
        raise LabError("no unshare here: apt-get install util-linux") from None


def compiled_folder():
    """Return the folder of ccache, or an empty text if this user may not write the cache."""
    path = os.path.join(cache.root(), "ccache")
    try:
        os.makedirs(path, exist_ok=True)
    except OSError:
        return ""
    return path if os.access(path, os.W_OK) else ""


# The command's root is a tmpfs that shows the build root's /usr and /etc; so any path may hold the checkout, also for a
# user who cannot write the build root.
ENTER = """set -e
root=$1 checkout=$2 dir=$3 modules=$4 compiled=$5 lower=$6 upper=$7 work=$8 over=$9
shift 9
case $checkout in /usr/*|/etc/*) mkdir -p "$root$checkout" 2>/dev/null || :;; esac
new=$root/mnt
mount -t tmpfs -o mode=755 tmpfs "$new"
for d in "$root"/*; do
	name=${d##*/}
	if [ -L "$d" ]; then cp -P "$d" "$new/"; else mkdir -p "$new/$name"; fi
done
chmod 1777 "$new/tmp"
for d in usr etc; do
	mount --bind "$root/$d" "$new/$d"
	mount -o remount,bind,ro "$new/$d"
done
if [ "$modules" ]; then
	mount --bind "$modules" "$new/lib/modules"
	mount -o remount,bind,ro "$new/lib/modules"
fi
if [ "$compiled" ]; then
	mkdir -p "$new$CCACHE_DIR"
	mount --bind "$compiled" "$new$CCACHE_DIR"
fi
if [ "$over" ]; then
	mount -t overlay overlay -o "lowerdir=$lower,upperdir=$upper,workdir=$work" "$new$over"
fi
mkdir -p "$new$checkout" 2>/dev/null || { echo "lab: a build cannot see $checkout: move it out of /usr and /etc" >&2; exit 1; }
mount --bind "$checkout" "$new$checkout"
mount --rbind /proc "$new/proc"
mount --rbind /dev "$new/dev"
exec chroot "$new" sh -c 'cd "$1"; shift; exec "$@"' sh "$dir" "$@"
"""
