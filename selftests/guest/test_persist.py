#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""FLUSH to persistent memory: an NVDIMM of a VM, which is a file of the host. Runs prog/verbs_persist.

This test cannot show that the data survives a loss of power, because the host's kernel keeps the data of killed processes.
unit/test_persist shows that the file is synchronised before the answer is sent; this file shows that it happens for each FLUSH.
"""
import harness
import programs
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


if __name__ == "__main__":
    harness.main()
