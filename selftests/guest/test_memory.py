#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Kinds of memory and of registration, within one VM: runs prog/verbs_memory, and selftests/kmod/exporter.c beside it."""
import programs

TESTS = """
    zero_based iova empty relaxed huge rereg_writable not_persistent dm dm_private dm_import dm_importer_dies dm_owner_dies dm_foreign
    dmabuf dmabuf_refused dmabuf_one_piece dmabuf_revoked dmabuf_revoked_busy dmabuf_revoked_dereg""".split()


class Memory(programs.LocalTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.a.run("insmod /tmp/selftests/ornic_exporter.ko")
        cls.addClassCleanup(cls.a.run, "rmmod ornic_exporter")


programs.local_points(Memory, "verbs_memory", TESTS)

if __name__ == "__main__":
    programs.harness.main()
