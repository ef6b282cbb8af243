# SPDX-License-Identifier: GPL-2.0
"""The two parts whose code is mutated, and how the tree's own Makefiles build each: with gcov's counters, plain, and sanitized.

All code under test is linked into one library, so that a mutant costs one compilation and one link, however many tests reach it.
For the daemon it is a shared library. For the provider it is one object, with which each test is linked again: from a shared
library, libibverbs would call the functions by which the tests replace its own. Everything is built in a copy of the tree, in which
the mutant replaces the original file.
"""
import ast
import glob
import os
import re
import shlex
import subprocess

COVER = "-O0 -g --coverage -fPIC -w"
PLAIN = "-O2 -fPIC -w"
SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=all"


class Failed(Exception):
    """A build step that must succeed has failed; the message names it."""


class Test:
    """A program that fails if the code under test is wrong."""

    def __init__(self, name, argv, build, env=None, link=None):
        self.name = name                # unit/test_mr, wire/test_control.TestPorts.test_two
        self.argv = argv
        self.build = build
        self.env = env or {}
        self.link = link                # what make calls the program, if it has mutable code of its own (inline functions)


class Build:
    """One way to build a part."""

    def __init__(self, part, name, make, library, objects, tests):
        self.part = part
        self.name = name
        self.make = make                # make and its arguments, without targets
        self.library = library          # the shared library
        self.objects = objects          # {source: object}
        self.tests = tests              # folders of the tests' own objects
        self.merged = library.endswith(".o")    # the library is one object, which each test is linked with again
        self.commands = {}
        self.templates = {}
        self.texts = {}

    def path(self, name):
        return os.path.join(self.part.tree, name)

    def run(self, *targets, more=()):
        done = subprocess.run([*self.make, "-s", *more, *targets], cwd=self.part.tree, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        if done.returncode:
            raise Failed("cannot build %s: %s" % (self.name, done.stdout[-2000:]))

    def command(self, target, more=()):
        """The command by which make builds a target, as a list of words."""
        if target not in self.commands:
            done = subprocess.run([*self.make, "-n", "-B", "V=1", *more, target], cwd=self.part.tree, text=True,
                                  stdin=subprocess.DEVNULL, capture_output=True)
            lines = [shlex.split(line) for line in done.stdout.replace("\\\n", " ").splitlines() if " -o " in line]
            lines = [words for words in lines if os.path.normpath(words[words.index("-o") + 1]) == os.path.normpath(target)]
            if len(lines) != 1:
                raise Failed("make does not say how it builds %s: %s" % (target, done.stdout + done.stderr))
            self.commands[target] = lines[0]
        return list(self.commands[target])

    def compiler(self, target, source):
        """Return the command that compiles a source. Run make -n once for all objects of a kind, because it takes a second."""
        kind = "library" if source in self.objects else os.path.dirname(target)
        if kind not in self.templates:
            self.templates[kind] = target, source, self.command(target)
        was_target, was_source, words = self.templates[kind]
        return [target if w == was_target else w[:-len(was_source)] + source if w.endswith(was_source) else w for w in words]

    def link(self, out, instead=None):
        """Links the library; @instead maps objects to those that replace them."""
        instead = instead or {}
        objects = [instead.get(path, self.path(path)) for path in self.objects.values()]
        flags = {"cover": ["--coverage"], "san": SANITIZERS.split()}.get(self.name, [])
        kind = ["-r", "-nostdlib"] if self.merged else ["-shared", *flags, "-Wl,-soname," + os.path.basename(self.library)]
        done = subprocess.run(["gcc", *kind, "-o", out, *objects], capture_output=True, text=True)
        if done.returncode:
            raise Failed("cannot link %s: %s" % (out, done.stderr[-2000:]))

    def users(self, header, name):
        """Objects under test and objects of tests whose source includes a header and has a name in it, {object: source}."""
        found = {}
        for path in glob.glob(os.path.join(self.path(self.part.objects_in[self.name]), "**", "*.d"), recursive=True):
            target, sources = self.dependencies(path)
            ours = target in self.objects.values() or target.startswith(self.tests) and "/test_" in target
            if header in sources[1:] and ours and target.endswith(".o") and self.mentions(sources, header, name):
                found[target] = sources[0]
        return found

    def mentions(self, sources, header, name):
        """Return true if a file of an object other than the header uses a name, or if the header has the name more than once."""
        if len(self.words(header).get(name, ())) != 1:
            return True
        return any(name in self.words(path) for path in sources if path != header and not path.startswith(".."))

    def words(self, path):
        """Return {word: [positions]} of a file of the tree, counted in words."""
        if path not in self.texts:
            found = self.texts[path] = {}
            with open(self.path(path), encoding="utf-8") as f:
                for number, word in enumerate(re.findall(r"\w+", f.read())):
                    found.setdefault(word, []).append(number)
        return self.texts[path]

    def dependencies(self, path):
        with open(path, encoding="utf-8") as f:
            target, _, rest = f.read().split("\n\n")[0].replace("\\\n", " ").partition(":")
        names = [os.path.relpath(os.path.join(self.part.tree, name), self.part.tree) for name in rest.split("\n")[0].split()]
        return os.path.relpath(os.path.join(self.part.tree, target.strip()), self.part.tree), names


def cases(path):
    """Names of the test cases of a script."""
    with open(path, encoding="utf-8") as f:
        tree = ast.parse(f.read())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in classes.values():
        methods = {}
        chain = [node]
        while chain:
            at = chain.pop()
            methods.update({m.name: 1 for m in at.body if isinstance(m, ast.FunctionDef) and m.name.startswith("test")})
            chain += [classes[base.id] for base in at.bases if isinstance(base, ast.Name) and base.id in classes]
        for method in methods:
            yield node.name + "." + method


class Part:
    """The base of both parts: a name, a folder, and a copy of the tree to build in."""

    shared = ""     # files among the unit tests that all of the part's tests are linked with

    def __init__(self, tree):
        self.tree = tree

    def steps(self):
        """Names of the builds that mutants are tried in, the fastest first."""
        return [name for name in self.builds if name != "cover"]

    def linking(self, build):
        """Return further arguments of make for the command that links a test."""
        return []

    def sources(self):
        """Sources that can be mutated, by their names in the tree."""
        return sorted(os.path.relpath(path, self.tree) for kind in ("*.c", "*.h")
                      for path in glob.glob(os.path.join(self.tree, self.folder, "**", kind), recursive=True)
                      if os.path.basename(path) != "main.c")

    def twin(self, name):
        """Return the test with counters that runs the same code: unit/test_x for san/test_x; any other test is its own twin."""
        suite, base = name.split("/")
        return "unit/" + base if suite in ("san", "tsan") else name

    def stamp_of(self, test):
        """Return the files, apart from the sources under test, that decide the result of a test."""
        suite, name = test.name.split("/")
        base = name.split(".")[0]
        tests = os.path.join(self.tree, "selftests")
        shared = glob.glob(os.path.join(tests, "**", "lib", "*.[ch]"), recursive=True) + \
            glob.glob(os.path.join(tests, "**", "lib", "*.py"), recursive=True)
        if suite == "wire":         # programs and modules that the tests on the wire use
            shared += [path for path in glob.glob(os.path.join(tests, "wire", "*.*"))
                       if not os.path.basename(path).startswith("test_")]
        else:
            shared += glob.glob(os.path.join(tests, "unit", self.shared)) if self.shared else []
        return sorted({path for suite in ("unit", "wire", "mutants") for path in
                       glob.glob(os.path.join(tests, suite, base + ".*"))} | set(shared))


class Daemon(Part):
    """ornicd: unit tests, plain and sanitized, and the tests on the wire."""

    name, folder = "daemon", "tools/ornicd"
    # Not run: their program replaces functions of the daemon by the linker's --wrap, which does not work in a shared library.
    wrapped = ("test_capture.Traffic.", "test_capture.Dissectors.", "test_capture.Congested.")
    objects_in = {"cover": "cover", "plain": "try", "san": "try"}

    def __init__(self, tree, cc="gcc"):
        super().__init__(tree)
        self.cc = cc
        sources = [s for s in self.sources() if s.endswith(".c")]
        self.builds = {}
        for name, out, sub, flags in (("cover", "cover", "host", COVER), ("plain", "try", "host", PLAIN),
                                      ("san", "try", "san", "-O1 -fPIC -w")):
            make = ["make", "O=" + out, "CC=" + cc, "CFLAGS=" + flags] + (["san=", "LDFLAGS=--coverage"] if name == "cover" else [])
            self.builds[name] = Build(self, name, make, "%s/%s/libornicd-tested.so" % (out, sub),
                                      {s: "%s/%s/%s.o" % (out, sub, s[:-2]) for s in sources},
                                      tuple("%s/selftests/%s/" % (out, t) for t in
                                            (("san", "wire") if name == "san" else ("unit",))))

    def tests(self):
        unit = sorted(os.path.basename(p)[:-2] for p in glob.glob(os.path.join(self.tree, "selftests/unit/test_*.c"))
                      if "test_libornic" not in p)
        wire = sorted(glob.glob(os.path.join(self.tree, "selftests/wire/test_*")))
        made = []
        for out, sub, build in (("try", "unit", "plain"), ("try", "san", "san")):
            for name in unit:
                target = "%s/selftests/%s/%s" % (out, sub, name)
                made.append(Test("%s/%s" % (sub, name), ["./" + target], build, link=target))
        env = {"O": os.path.join(self.tree, "try")}
        for path in wire:
            name = os.path.splitext(os.path.basename(path))[0]
            if path.endswith(".c"):
                target = "try/selftests/wire/" + name
                made.append(Test("wire/" + name, ["./" + target], "san", env, link=target))
            elif path.endswith(".py"):
                made += [Test("wire/%s.%s" % (name, case), ["selftests/wire/%s.py" % name, case], "san", env)
                         for case in cases(path) if not (name + "." + case).startswith(self.wrapped)]
        return made

    def counted(self, test):
        """The same test in the build with counters, None if another test has the same code."""
        if test.name.startswith("san/"):
            return None
        return Test(test.name, [word.replace("./try/", "./cover/") for word in test.argv], "cover",
                    {key: value.replace(os.path.join(self.tree, "try"), os.path.join(self.tree, "cover"))
                     for key, value in test.env.items()})

    def build(self, name):
        """Objects, the shared library, and tests that are linked to it: the archive becomes a linker script."""
        b = self.builds[name]
        out, sub = b.library.split("/")[:2]
        subs = ("host", "san") if name == "cover" else (sub,)
        for each in subs:
            b.run("%s/%s/libornicd.a" % (out, each))
        b.link(b.path(b.library))
        for each in subs:
            with open(b.path("%s/%s/libornicd.a" % (out, each)), "w", encoding="utf-8") as f:
                f.write("INPUT(%s)\n" % b.path(b.library))
        unit = ["%s/selftests/%s/%s" % (out, "san" if name == "san" else "unit", t.name.split("/")[1]) for t in self.tests()
                if t.name.startswith("unit/")]
        wire = ["%s/selftests/wire/%s" % (out, os.path.basename(p)[:-2])
                for p in glob.glob(os.path.join(self.tree, "selftests/wire/test_*.c"))]
        wire += ["%s/%s" % (out, p) for p in ("selftests/vfu_device", "selftests/roce_guest", "selftests/frame_guest", "san/ornicd",
                                              "san/ornicctl", "ornicd")]
        b.run(*unit, *(wire if name != "plain" else []), more=["-j2"])


class Provider(Part):
    """libornic, in the guest's build root: its unit tests, plain and sanitized, and those with threads by the thread sanitizer.

    The merged object is put in the place of the list of objects in the Makefile.
    """

    name, folder = "provider", "tools/libornic"
    shared = "test_libornic_kernel.*"
    objects_in = {"cover": "cover-provider", "plain": "try-provider", "san": "san-provider", "tsan": "tsan-provider"}

    def __init__(self, tree, cc="gcc"):
        super().__init__(tree)
        with open(os.path.join(tree, self.folder, "CMakeLists.txt"), encoding="utf-8") as f:
            listed = [line.strip() for line in f if line.startswith("  ") and line.strip().endswith(".c")]
        self.builds = {}
        for name, flags, ld in (("cover", COVER, "--coverage"), ("plain", PLAIN, ""),
                                ("san", "-O1 -fPIC -w " + SANITIZERS, SANITIZERS),
                                ("tsan", "-O1 -g -w -fsanitize=thread", "-fsanitize=thread")):
            out = self.objects_in[name]
            make = ["make", "-f", os.path.join(tree, self.folder, "Makefile"), "RDMA_CORE=/usr/src/rdma-core", "CC=gcc", "O=" + out,
                    "CFLAGS=" + flags, "LDFLAGS=" + ld]
            self.builds[name] = Build(self, name, make, out + "/libornic-tested.o",
                                      {os.path.join(self.folder, s): "%s/%s.o" % (out, s[:-2]) for s in listed}, (out + "/",))

    def tests(self):
        names = sorted(os.path.basename(p)[:-2] for p in glob.glob(os.path.join(self.tree, "selftests/unit/test_libornic_*.c"))
                       if not p.endswith("_kernel.c"))
        return [Test("%s/%s" % (suite, name), ["./%s/%s" % (self.objects_in[build], name)], build,
                     link="%s/%s" % (self.objects_in[build], name))
                for suite, build in (("unit", "plain"), ("san", "san"), ("tsan", "tsan")) for name in names
                if suite != "tsan" or "threads" in name]

    def counted(self, test):
        if test.build != "plain":
            return None
        return Test(test.name, ["./%s/%s" % (self.objects_in["cover"], test.name.split("/")[1])], "cover")

    def linking(self, build):
        return ["objs=" + build.path(build.library)]

    def build(self, name):
        b = self.builds[name]
        b.run(*b.objects.values(), more=["-j2"])
        b.link(b.path(b.library))
        programs = [t.link for t in self.tests() if t.build == ("plain" if name == "cover" else name)]
        if name == "cover":
            programs = [p.replace(self.objects_in["plain"], self.objects_in["cover"]) for p in programs]
        b.run(*programs, more=[*self.linking(b), "-j2"])


PARTS = {part.name: part for part in (Daemon, Provider)}
