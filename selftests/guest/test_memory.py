#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Kinds of memory and of registration, within one VM: runs prog/verbs_memory, and selftests/kmod/exporter.c beside it."""
import re

import programs

REGISTERS, DEVICE_MEMORY = 0, 4         # BARs

TESTS = """
    zero_based iova empty relaxed huge rereg_writable rereg_same_pd not_persistent dm dm_private dm_import dm_importer_dies dm_owner_dies
    dm_foreign dmabuf dmabuf_refused dmabuf_one_piece dmabuf_revoked dmabuf_revoked_busy dmabuf_revoked_dereg""".split()

BLOCK = """
import pyverbs.device as d
context = d.Context(name="ornic0")
block = d.DM(context, d.AllocDmAttr(8192))
print("there", flush=True)
input()
"""


class Memory(programs.LocalTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.a.run("insmod /tmp/selftests/ornic_exporter.ko")
        cls.addClassCleanup(cls.a.run, "rmmod ornic_exporter")

    def test_write_combining(self):
        """ORN-DM-10: processes map device memory, and no doorbell page, write-combining."""
        bars = [line.split() for line in self.a.run("cat /sys/bus/pci/drivers/ornic/*:*/resource").out.splitlines()]
        process = self.spawn(self.a, "exec python3 -c '%s'" % BLOCK, 60)
        process.wait_for("there", 60)
        kinds = {}
        for line in self.a.run("cat /sys/kernel/debug/x86/pat_memtype_list").out.splitlines():
            found = re.match(r"PAT: \[mem 0x(\w+)-0x(\w+)\] (\S+)", line)
            for number, (first, last, _) in enumerate(bars[:6]):
                if found and int(first, 16) and int(first, 16) <= int(found[1], 16) <= int(last, 16):
                    kinds.setdefault(number, set()).add(found[3])
        self.assertEqual(kinds[REGISTERS], {"uncached-minus"})
        self.assertEqual(kinds[DEVICE_MEMORY], {"write-combining"})


programs.local_points(Memory, "verbs_memory", TESTS)

if __name__ == "__main__":
    programs.harness.main()
