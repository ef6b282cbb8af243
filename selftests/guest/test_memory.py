#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Kinds of memory and of registration, within one VM: runs prog/verbs_memory, together with selftests/kmod/exporter.c."""
import re

import programs

REGISTERS, DEVICE_MEMORY = 0, 4         # BARs

TESTS = """
    zero_based iova empty relaxed huge rereg_writable rereg_child rereg_same_pd rereg_request not_persistent dm dm_private dm_import
    dm_importer_dies dm_owner_dies dm_foreign dmabuf dmabuf_refused dmabuf_one_piece dmabuf_revoked dmabuf_revoked_busy
    dmabuf_revoked_dereg""".split()

BLOCK = """
import pyverbs.device as d
context = d.Context(name="ornic0")
block = d.DM(context, d.AllocDmAttr(8192))
print("there", flush=True)
input()
"""

# A minimal provider: GET_CONTEXT by write(2), then 8 KiB of device memory by ioctl(2) and a mapping of it
HANDSHAKE = """
import ctypes, fcntl, mmap, os, struct, sys
DM, IOCTL, OFFSET = 14, 0xc0181b01, 0x1000
request = bytes.fromhex(sys.argv[1])
fd = os.open("/dev/infiniband/uverbs0", os.O_RDWR)
response = ctypes.create_string_buffer(8 + 64)
command = struct.pack("<IHHQ", 0, (16 + len(request)) // 4, len(response) // 4, ctypes.addressof(response)) + request
try:
    os.write(fd, command)
except OSError as error:
    sys.exit("errno %d" % error.errno)
offset = ctypes.c_uint64()
attributes = [(0, 0, 0), (1, 8, 8192), (2, 4, 12), (OFFSET, 8, ctypes.addressof(offset))]
header = struct.pack("<HHHHQII", 24 + 16 * len(attributes), DM, 0, len(attributes), 0, 0, 0)
buf = ctypes.create_string_buffer(header + b"".join(struct.pack("<HHHHQ", i, size, 1, 0, data) for i, size, data in attributes))
fcntl.ioctl(fd, IOCTL, buf)
block = mmap.mmap(fd, 8192, offset=offset.value)
block[0]
print("there", flush=True)
input()
"""


class Memory(programs.LocalTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.a.run("insmod /tmp/selftests/ornic_exporter.ko")
        cls.addClassCleanup(cls.a.run, "rmmod ornic_exporter")

    def kinds(self, program):
        """Return the caching modes of a program's mappings of the BARs, by number."""
        bars = [line.split() for line in self.a.run("cat /sys/bus/pci/drivers/ornic/*:*/resource").out.splitlines()]
        process = self.spawn(self.a, "exec python3 -c '%s' %s" % program, 60)
        process.wait_for("there", 60)
        kinds = {}
        for line in self.a.run("cat /sys/kernel/debug/x86/pat_memtype_list").out.splitlines():
            found = re.match(r"PAT: \[mem 0x(\w+)-0x(\w+)\] (\S+)", line)
            for number, (first, last, _) in enumerate(bars[:6]):
                if found and int(first, 16) and int(first, 16) <= int(found[1], 16) <= int(last, 16):
                    kinds.setdefault(number, set()).add(found[3])
        process.kill()
        process.wait(60)
        return kinds

    def test_write_combining(self):
        """ORN-DM-10: processes map device memory, and no doorbell page, write-combining."""
        kinds = self.kinds((BLOCK, ""))
        self.assertEqual(kinds[REGISTERS], {"uncached-minus"})
        self.assertEqual(kinds[DEVICE_MEMORY], {"write-combining"})

    def test_handshake(self):
        """A provider that does not declare that it orders its stores gets an uncached mapping; requests may be longer if the
        rest is zeros."""
        for request, kind in (("0000000000000000", "uncached-minus"), ("feffffff00000000", "uncached-minus"),
                              ("0100000000000000", "write-combining"), ("010000000000000000000000", "write-combining")):
            with self.subTest(request=request):
                self.assertEqual(self.kinds((HANDSHAKE, request))[DEVICE_MEMORY], {kind})
        for request, error in (("", 22), ("01000000", 22), ("0100000001000000", 95), ("010000000000000001000000", 95)):
            with self.subTest(request=request):
                done = self.a.run("exec python3 -c '%s' '%s'" % (HANDSHAKE, request), check=False)
                self.assertIn("errno %d" % error, done.out + done.err)


programs.local_points(Memory, "verbs_memory", TESTS)

if __name__ == "__main__":
    programs.harness.main()
