#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Kinds of memory and of registration, within one VM: runs prog/verbs_memory."""
import programs

TESTS = """
    zero_based iova empty relaxed huge rereg_writable dm dm_private dm_import dm_importer_dies dm_owner_dies dm_foreign
    dmabuf dmabuf_refused""".split()


class Memory(programs.LocalTest):
    pass


programs.local_points(Memory, "verbs_memory", TESTS)

if __name__ == "__main__":
    programs.harness.main()
