#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""FLUSH to persistent memory: an NVDIMM of a VM, which is a file of the host. Runs prog/verbs_persist.

This test cannot show that the data survives a loss of power, because the host's kernel keeps the data of killed processes.
unit/test_persist shows that the file is synchronised before the answer is sent; this file shows that it happens for each FLUSH.
"""
import os

import harness
import programs
from lab import Lab
from lab.vm import nvdimm_file

PORT = 7479
LENGTH = 65536
FLUSHES = LENGTH // 4096 + 1
PATTERN = bytes((i * 7 + (i >> 8)) & 0xff for i in range(LENGTH))
# The whole DIMM becomes a character device that processes can map, as `ndctl create-namespace --mode devdax` does it.
DEVDAX = """set -e
modprobe -a nfit nd_pmem dax_pmem device_dax
cd /sys/bus/nd/devices
until [ -e region0/dax_seed ] && [ -e namespace0.0 ]; do sleep 0.1; done
[ ! -e /dev/dax0.0 ] || exit 0
dax=$(cat region0/dax_seed)
echo namespace0.0 > /sys/bus/nd/drivers/nd_pmem/unbind || true
cat /proc/sys/kernel/random/uuid > $dax/uuid
echo ram > $dax/mode
echo 4096 > $dax/align
echo namespace0.0 > $dax/namespace
echo $dax > /sys/bus/nd/drivers/dax_pmem/bind
until [ -e /dev/dax0.0 ]; do sleep 0.1; done
"""

# The kernel uses the character device as RAM, as `daxctl reconfigure-device --mode system-ram` does it.
RAM = """set -e
modprobe kmem
cd /sys/bus/dax/drivers
echo dax0.0 > device_dax/unbind
echo dax0.0 > kmem/new_id
grep 'System RAM (kmem)' /proc/iomem
"""
RAM_BYTES = 512 << 20                   # the kernel needs a whole block of 128 MiB, and some of the DIMM for itself
# Allocates memory until a page is of this RAM, and registers that page.
ALLOCATE = """
import ctypes, mmap, os, struct
import pyverbs.enums as e
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
PAGE, PIECE, FLUSH_PERSISTENT = 4096, 8 << 20, 1 << 9
pd = PD(Context(name="ornic0"))
pages = open("/proc/self/pagemap", "rb", buffering=0)
ranges = [[int(end, 16) // PAGE for end in line.split(" : ")[0].split("-")]
          for line in open("/proc/iomem") if "System RAM (kmem)" in line]
kept = []
def find():
    while True:
        piece = mmap.mmap(-1, PIECE)
        piece.madvise(mmap.MADV_NOHUGEPAGE)
        kept.append(piece)
        start = ctypes.addressof(ctypes.c_char.from_buffer(piece))
        for at in range(0, PIECE, PAGE):
            piece[at] = 1
        entries = os.pread(pages.fileno(), PIECE // PAGE * 8, start // PAGE * 8)
        for i, (entry,) in enumerate(struct.iter_unpack("<Q", entries)):
            if any(first <= entry & (1 << 55) - 1 <= last for first, last in ranges):
                return start + i * PAGE
address = find()
MR(pd, PAGE, e.IBV_ACCESS_LOCAL_WRITE, address)
try:
    MR(pd, PAGE, e.IBV_ACCESS_LOCAL_WRITE | FLUSH_PERSISTENT, address)
    print("registered")
except PyverbsRDMAError as error:
    print("rejected", error)
"""


class Persist(programs.ProgramTest):
    program = "verbs_persist"
    ornic_only = True

    def setUp(self):
        super().setUp()
        if self.b.run("modinfo dax_pmem", check=False).rc:
            self.skipTest("the guest's kernel has no persistent memory")
        self.file = nvdimm_file(self.p.lab.state.data["config"]["nvdimm"], self.b.number)

    def flushes(self):
        return int(self.b.run("cat /sys/class/infiniband/%s/ports/1/hw_counters/flush_persistent" % self.device).out)

    def test_flush(self):
        self.b.run(DEVDAX)
        start = self.b.run("cd /sys/bus/nd/devices; echo $(($(cat dax0.*/resource 2>/dev/null | head -n 1)"
                           " - $(cat region0/resource)))").out
        before = self.flushes()
        said, _ = self.exchange("between", "/tmp/selftests/verbs_persist -d %s -m /dev/dax0.0" % self.device,
                                "/tmp/selftests/verbs_persist -d %s {addr}" % self.device, PORT, timeout=300)
        self.judge(said, "flush_persistent")
        self.assertEqual(self.flushes() - before, FLUSHES)
        with open(self.file, "rb") as f:
            f.seek(int(start))
            self.assertEqual(f.read(LENGTH), PATTERN)

    def test_used_as_ram(self):
        """ORN-MEM-24: an NVDIMM that the kernel uses as RAM is not persistent for the processes that get its pages."""
        self.used_vms = False
        path = os.path.join(harness.BUILT, "nvdimm", "ram-%d" % os.getpid())
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        arguments = ["-machine", "nvdimm=on", "-m", "1G,slots=1,maxmem=3G", "-object",
                     "memory-backend-file,id=nv,share=on,size=%d,mem-path=%s" % (RAM_BYTES, path), "-device", "nvdimm,memdev=nv"]
        lab = Lab.up(1, name="ram-%d" % os.getpid(), mem="1G", guest=harness.GUEST, qemu_args=arguments, device_keys="nvdimm=on",
                     ornicd=os.path.join(harness.BUILT, "ornicd"), modules=harness.PAYLOAD, provider=harness.PAYLOAD)
        self.addCleanup(lab.down)
        vm = lab.vms[0]
        vm.patience = harness.SLOW
        vm.run(DEVDAX + RAM, timeout=60)
        vm.run("cat > /tmp/allocate.py <<'EOF'\n%s\nEOF" % ALLOCATE)
        said = vm.run("python3 /tmp/allocate.py", timeout=300).out
        self.assertRegex(said, "rejected .*Errno: 22")
        self.assertFalse(harness.complaints(vm))


if __name__ == "__main__":
    harness.main()
