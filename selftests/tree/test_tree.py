#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Rules of the source tree that a program can check."""
import os
import re
import subprocess
import sys
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(TOP, "selftests", "lib"))

import tap  # noqa: E402

SOURCE = (".c", ".h", ".py", ".rst", ".toml", ".sh", ".mk", ".map", ".pml")
LICENCES = {"include/ornic/": "GPL-2.0 OR Linux-OpenIB", "uapi/": "((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB)",
            "tools/libornic/": "GPL-2.0 OR Linux-OpenIB"}
# Barriers between host and device; smp_mb() orders processors of one kernel and does not count.
# A definition of mb() is no barrier: the KUnit test replaces mb().
BARRIER = re.compile(r"(?<!#define )\b(mb|virt_mb|__sync_synchronize)\(\)|atomic_thread_fence|__atomic_thread_fence")
RINGS = ("include/linux/ornic/ring.h", "tools/ornicd/engine/ring.h", "tools/libornic/ring.h")
BARRIER_TOO = ("drivers/net/ethernet/ornic/ctrl.c",)    # the enable handshake, ORN-CTL-1

# Folders of the daemon and the folders whose headers they may include, in addition to their own.
ARROWS = {
    "config": {"capture", "engine", "net", "packet", "."},
    "control": {"fault", "capture", "config", "dev", "engine", "vfu", "mem", "packet", "net", "."},
    "vfu": {"mem", "."},
    "mem": {"."},
    "dev": {"engine", "vfu", "mem", "packet", "net", "."},
    "engine": {"mem", "packet", "net", "."},
    "fault": {"engine", "net", "packet", "."},
    "net": {"packet", "."},
    "packet": {"."},
    "capture": {"net", "packet", "."},
}


RULES_SINCE = "2c3b8b657dc37d3fae06770bc400d49a92ad9103"        # older commits are not judged


def git(*args):
    return subprocess.run(["git", "-c", "safe.directory=*", "-C", TOP, *args], capture_output=True, text=True)


def faults_of_commit(message):
    """Return what CONTRIBUTING.md demands of a commit message and this one lacks."""
    subject, _, body = message.strip().partition("\n")
    lines = [line for line in body.splitlines() if line and not re.match(r"(?:[A-Z][\w-]+-by|Fixes|Link|Cc|Closes): ", line)]
    said = {"a subject of at most 72 characters": len(subject) <= 72,
            "the part in front of the subject": bool(re.match(r"(Revert \")?[\w./-]+(, [\w./-]+)*: \S", subject)),
            "a blank second line": not body or body.startswith("\n"),
            "a body": bool(lines),
            "Signed-off-by": "\nSigned-off-by: " in body}
    return [name for name, good in said.items() if not good]


def tracked():
    """Return the files of the repository, including those not yet committed."""
    listed = git("ls-files", "-co", "--exclude-standard")
    listed.check_returncode()
    return [f for f in listed.stdout.splitlines() if os.path.isfile(os.path.join(TOP, f))]


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8", errors="replace") as f:
        return f.read()


class Tree(unittest.TestCase):
    def test_spdx(self):
        bad = []
        for path in tracked():
            script = os.access(os.path.join(TOP, path), os.X_OK)
            if not path.endswith(SOURCE) and not script and os.path.basename(path) not in ("Makefile", "Kbuild", "Kconfig"):
                continue
            head = "\n".join(read(path).splitlines()[:2])
            wanted = next((v for k, v in LICENCES.items() if path.startswith(k)), "GPL-2.0")
            if "SPDX-License-Identifier: " + wanted not in head:
                bad.append(path)
        self.assertEqual(bad, [], "first line lacks the SPDX line that belongs there")

    def test_programs_run(self):
        """Test programs are executable: the runner does not see others."""
        self.assertEqual([path for path in tracked() if re.match(r"selftests/\w+/test_\w+\.py$", path) and "__main__" in read(path) and
                          not os.access(os.path.join(TOP, path), os.X_OK)], [])

    def test_interface_headers_stand_alone(self):
        bad = []
        for path in tracked():
            if path.startswith("include/ornic/"):
                for name in re.findall(r'#include\s+[<"]([^>"]+)', read(path)):
                    if name != "linux/types.h" and not os.path.exists(os.path.join(TOP, "include/ornic", name)):
                        bad.append("%s includes %s" % (path, name))
        self.assertEqual(bad, [])

    def test_daemon_layers(self):
        """The data path does not know vfio-user, vfio-user does not know RDMA."""
        bad = []
        for path in tracked():
            match = re.match(r"tools/ornicd/(\w+)/[^/]+\.[ch]$", path)
            if not match or match.group(1) not in ARROWS:
                continue
            folder = match.group(1)
            for name in re.findall(r'#include\s+"([^"]+)"', read(path)):
                target = os.path.normpath(os.path.join("tools/ornicd", folder, name))
                if not os.path.exists(os.path.join(TOP, target)):
                    target = os.path.join("tools/ornicd", name)
                layer = os.path.relpath(os.path.dirname(target), "tools/ornicd")
                if layer != folder and layer not in ARROWS[folder]:
                    bad.append("%s includes %s" % (path, name))
        self.assertEqual(bad, [])

    def test_pieces_do_not_share_files(self):
        """Driver, provider and daemon share the interface headers only."""
        bad = []
        for path in tracked():
            if path.endswith((".c", ".h")) and path.startswith(("drivers/", "tools/")):
                for name in re.findall(r'#include\s+["<]([^">]+)', read(path)):
                    other = re.search(r"(libornic|ornicd|drivers)/", name)
                    if other and other.group(1) not in path.split("/")[:2]:
                        bad.append("%s includes %s" % (path, name))
        self.assertEqual(bad, [])

    def test_full_barriers_live_in_ring_h(self):
        bad = [p for p in tracked() if p.startswith(("drivers/", "tools/", "include/")) and p.endswith((".c", ".h"))
               and p not in RINGS + BARRIER_TOO and BARRIER.search(read(p))]
        self.assertEqual(bad, [], "a full barrier outside ring.h: the ring rules belong there")

    def test_no_leftovers(self):
        words = re.compile(r"\b(TODO|FIXME|XXX)\b")
        bad = [p for p in tracked() if p.endswith((".c", ".h", ".rst")) and words.search(read(p))]
        bad += [p for p in tracked() if re.match(r"(utils?|common|misc|helpers?)\.[ch]$", os.path.basename(p))
                and not p.startswith("compat/")]        # named as the kernel's header that it replaces
        self.assertEqual(bad, [])

    def test_clauses_exist(self):
        done = subprocess.run([os.path.join(TOP, "selftests", "clauses"), "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_names_of_functions(self):
        """A stack trace names one function: no two files of the drivers define the same name."""
        seen = {}
        for path in tracked():
            if path.startswith("drivers/") and path.endswith(".c"):
                for name in re.findall(r"^(?:static )?[a-z][\w *]*?\b(ornic_\w+)\([^;]*?\)\n\{", read(path), re.M):
                    seen.setdefault(name, set()).add(path)
        self.assertGreater(len(seen), 500)
        self.assertEqual({name: paths for name, paths in seen.items() if len(paths) > 1}, {})

    def test_verbs_name_tests_that_exist(self):
        named = re.findall(r"\b((?:guest|unit)/test_\w+)", read("Documentation/verbs.rst"))
        have = {os.path.splitext(p)[0] for p in tracked()}
        self.assertGreater(len(named), 40)
        self.assertEqual([n for n in named if "selftests/" + n not in have], [])

    def test_commands_name_tests_that_exist(self):
        """make check T=... in the documents."""
        done = subprocess.run([os.path.join(TOP, "selftests", "run"), "--list"], capture_output=True, text=True, check=True)
        have = set(done.stdout.split())
        ours = [p.split("/", 1)[1] for p in tracked() if p.startswith("selftests/")]
        have |= {p.split("/")[0] for p in ours} | {"san"}       # san has no folder
        have |= {os.path.splitext(p)[0] for p in ours}          # programs in C that are not built
        named = [name for path in tracked() if path.endswith((".md", ".rst"))
                 for names in re.findall(r'make check [^`\n]*?\bT=(?:"([^"]+)"|([\w/]+))', read(path)) for name in "".join(names).split()]
        self.assertGreater(len(named), 15)
        self.assertEqual([name for name in named if name not in have], [])

    def test_commits(self):
        """CONTRIBUTING.md, Commits"""
        self.assertEqual(faults_of_commit("a: b\n\nWhy.\n\nSigned-off-by: N <n@e>\n"), [])
        self.assertEqual(len(faults_of_commit("b" * 73)), 4)
        if git("merge-base", "--is-ancestor", RULES_SINCE, "HEAD").returncode:
            self.skipTest("no history: no clone, or a shallow one")
        messages = git("log", "-z", "--no-merges", "--format=%B", RULES_SINCE + "..HEAD").stdout.split("\0")
        bad = [(message.splitlines()[0], faults_of_commit(message)) for message in messages if message]
        self.assertEqual([(subject, faults) for subject, faults in bad if faults], [])

    def test_specification_renders(self):
        out = os.path.join(os.environ.get("O", os.path.join(TOP, "build")), "doc")
        done = subprocess.run(["make", "-s", "-C", os.path.join(TOP, "Documentation"), "html", "OUT=" + out],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_figures(self):
        """Each figure matches its text, and a document shows it."""
        done = subprocess.run([os.path.join(TOP, "Documentation", "figures", "draw"), "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        documents = "".join(read(p) for p in tracked() if p.endswith(".rst"))
        names = [os.path.basename(p) for p in tracked() if p.startswith("Documentation/figures/") and p.endswith(".svg")]
        self.assertGreaterEqual(len(names), 3)
        self.assertEqual([n for n in names if "figures/" + n not in documents], [])

    def test_man_pages(self):
        for path in tracked():
            if path.startswith("Documentation/man/") and path[-2:] in (".1", ".5", ".8"):
                done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", os.path.join(TOP, path)],
                                      capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), path)


if __name__ == "__main__":
    tap.main()
