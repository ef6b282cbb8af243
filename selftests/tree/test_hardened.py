#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The programs that were built are hardened, by what readelf says of them; and compilers, users and sanitizers get suitable options."""
import glob
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(TOP, "selftests", "lib"))

import program  # noqa: E402
import tap      # noqa: E402

HARDEN = os.path.join(TOP, "tools", "build", "harden")
CC = os.environ.get("CC", "gcc")
PROGRAMS = [os.path.join(program.BUILD, name) for name in ("ornicd", "ornicctl")]
LIBRARY = os.path.join(program.BUILD, "host", "libornicd.a")
PROVIDERS = glob.glob(os.path.join(program.BUILD, "guest", "*", "libornic-rdmav*.so"))
OURS = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "O", "T", "V", "CFLAGS", "CPPFLAGS", "LDFLAGS")
ENV = {k: v for k, v in os.environ.items() if k not in OURS}
ON_X86 = ["-fcf-protection"] if platform.machine() == "x86_64" else []
ON_ARM64 = ["-mbranch-protection=standard"] if platform.machine() == "aarch64" else []
ALL = ["-fPIE", "-fstack-protector-strong", "-fstack-clash-protection", *ON_X86, *ON_ARM64, "-Wformat", "-Wformat-security"]


def readelf(*args):
    return subprocess.run(["readelf", "-W", *args], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}).stdout


def offered(step, kind, compiler, *flags):
    done = subprocess.run([HARDEN, step, kind, compiler, *flags], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.split()


class Built(unittest.TestCase):
    def segments_and_symbols(self, path):
        """What programs and libraries have in common."""
        dynamic, segments = readelf("-d", path), readelf("-l", path)
        self.assertRegex(dynamic, r"\bBIND_NOW\b|Flags: .*\bNOW\b", "lazy binding")
        self.assertIn(" GNU_RELRO ", segments)
        self.assertNotIn("TEXTREL", dynamic)
        self.assertNotRegex(dynamic, r"\((RPATH|RUNPATH)\)")
        flags = re.findall(r"^ +(LOAD|GNU_STACK) .* 0x\w+ ([RWE ]{3}) 0x\w+$", segments, re.M)
        self.assertIn(("GNU_STACK", "RW "), flags)
        self.assertEqual([f for f in flags if "W" in f[1] and "E" in f[1]], [])
        symbols = readelf("--dyn-syms", path)
        self.assertIn(" UND __stack_chk_fail@", symbols)
        return re.findall(r" UND (__\w+_chk)@", symbols)

    def test_programs(self):
        for path in PROGRAMS:
            with self.subTest(path=os.path.basename(path)):
                self.assertRegex(readelf("-h", path), r"Type: +DYN")
                self.assertRegex(readelf("-d", path), r"\(FLAGS_1\) .*\bPIE\b")
                checked = self.segments_and_symbols(path)
                self.assertGreaterEqual(set(checked), {"__snprintf_chk", "__printf_chk"})

    def test_each_object(self):
        """No source was compiled with other options than the rest: each has an entry in the debugging information."""
        for path in PROGRAMS:
            with self.subTest(path=os.path.basename(path)):
                made = re.findall(r"DW_AT_producer .*?: (GNU C\S* .*)", readelf("--debug-dump=info", "--dwarf-depth=1", path))
                if not made:
                    self.skipTest("no debugging information of gcc: built with other CFLAGS or another compiler")
                for producer in made:
                    self.assertEqual([o for o in ALL if o.startswith("-f") and o not in re.sub("=full", "", producer).split()], [],
                                     producer)

    @unittest.skipUnless(ON_X86 or ON_ARM64, "the processor has neither IBT nor BTI")
    def test_indirect_jumps(self):
        """Each object lands indirect jumps only where they belong. The program says so, too, if the C library's start files do."""
        wanted = r"x86 feature: IBT, SHSTK" if ON_X86 else r"AArch64 feature: BTI, PAC"
        notes = readelf("-n", LIBRARY).split("\nFile: ")[1:]
        self.assertGreater(len(notes), 100)
        self.assertEqual([note.splitlines()[0] for note in notes if not re.search(wanted, note)], [])

    @unittest.skipUnless(PROVIDERS, "the provider is not built")
    def test_provider(self):
        for path in PROVIDERS:
            with self.subTest(path=os.path.relpath(path, program.BUILD)):
                self.segments_and_symbols(path)


class Options(unittest.TestCase):
    def compiler(self, body):
        """Return the command of a compiler: a shell script with the arguments in $*."""
        folder = tempfile.mkdtemp(prefix="ornic-harden-")
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "cc")
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n" + body)
        os.chmod(path, 0o755)
        return path

    def test_all(self):
        self.assertEqual(offered("compile", "pie", CC, "-O2")[:len(ALL)], ALL)
        self.assertEqual(offered("compile", "pic", CC, "-O2")[:len(ALL) - 1], ALL[1:])
        self.assertEqual(offered("link", "pie", CC), ["-pie", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack"])
        self.assertEqual(offered("link", "pic", CC), ["-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack"])

    def test_fortify(self):
        """Only with optimization, without sanitizers, and where the user does not choose the level."""
        def fortified(*flags):
            return [o for o in offered("compile", "pie", CC, *flags) if "FORTIFY" in o]
        self.assertRegex(" ".join(fortified("-O2", "-g")), r"^-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=[23]$")
        for flags in ([], ["-O0"], ["-O2", "-O0"], ["-O2", "-fsanitize=address"], ["-O2", "-D_FORTIFY_SOURCE=2"], ["-O2", "-U_FORTIFY_SOURCE"]):
            self.assertEqual(fortified(*flags), [], flags)
        self.assertTrue(fortified("-Os"))

    def test_poor_compilers(self):
        """An option that a compiler rejects or warns of is left out, and the others stay."""
        for lacks in ("-fcf-protection", "-fstack-clash-protection", "-fstack-protector-strong", "-fPIE", "-Wl,-z,now", "-pie"):
            cc = self.compiler('case " $* " in *" %s "*) echo no >&2; exit 1 ;; esac; exec %s "$@"\n' % (lacks, CC))
            self.assertEqual(offered("compile", "pie", cc, "-O2")[:len(ALL) - 1], [o for o in ALL if o != lacks][:len(ALL) - 1])
            self.assertEqual("-pie" in offered("link", "pie", cc), lacks != "-pie")
            self.assertEqual("-Wl,-z,now" in offered("link", "pie", cc), lacks != "-Wl,-z,now")
        cc = self.compiler('case " $* " in *"_SOURCE=3 "*) exit 1 ;; esac; exec %s "$@"\n' % CC)
        self.assertIn("-D_FORTIFY_SOURCE=2", offered("compile", "pie", cc, "-O2"))
        for body in ("exit 1\n", "echo no >&2; exit 127\n"):
            self.assertEqual(offered("compile", "pie", self.compiler(body), "-O2"), [])
            self.assertEqual(offered("link", "pie", self.compiler(body)), [])

    def test_static(self):
        self.assertNotIn("-pie", offered("link", "pie", CC, "-static"))

    def commands(self, target, *variables):
        """Return the commands by which make would compile daemon.c and link, as lists of words."""
        name = "build/none"         # a folder that does not exist
        done = subprocess.run(["make", "-n", "V=1", "O=" + name, "CC=" + CC, *variables, target.format(name)], cwd=TOP, env=ENV, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [shlex.split(line) for line in done.stdout.splitlines() if line.startswith(CC + " ")]
        return next(words for words in lines if words[-1] == "tools/ornicd/daemon.c"), lines[-1]

    def test_makefile(self):
        """make passes the options before the user's, which win, and none to builds with sanitizers."""
        user = ["-O1", "-fno-stack-protector"]
        compile_, link = self.commands("{}/ornicd", "CFLAGS=" + " ".join(user), "LDFLAGS=-Wl,-z,lazy", "CPPFLAGS=-DNDEBUG")
        self.assertEqual([o for o in offered("compile", "pie", CC, *user) + ["-DNDEBUG"] if o not in compile_], [])
        self.assertEqual(compile_[compile_.index("-O1"):][:2], user)
        self.assertGreater(compile_.index("-O1"), max(compile_.index(o) for o in offered("compile", "pie", CC, *user)))
        self.assertEqual([o for o in offered("link", "pie", CC) if o not in link], [])
        self.assertGreater(link.index("-Wl,-z,lazy"), link.index("-Wl,-z,now"))
        for words in self.commands("{}/san/ornicd"):
            self.assertEqual([w for w in words if "protect" in w or "FORTIFY" in w or w == "-pie"], [])

    def test_user_flags_compile(self):
        """The flags of Debian's packages, a build without optimization and one with a sanitizer: no warning, which would be an error."""
        for variables in (["CFLAGS=-g -O2 -fstack-protector-strong -Wformat -Werror=format-security",
                           "CPPFLAGS=-Wdate-time -D_FORTIFY_SOURCE=2", "LDFLAGS=-Wl,-z,relro"], ["CFLAGS=-O0 -g"],
                          ["CFLAGS=-O1 -fsanitize=address"], ["CFLAGS=-O2 -fno-pie"]):
            words, _ = self.commands("{}/ornicd", *variables)
            out = os.path.join(os.path.dirname(self.compiler("")), "daemon.o")
            words[words.index("-o") + 1] = out
            done = subprocess.run(words, cwd=TOP, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), variables)


if __name__ == "__main__":
    tap.main()
