#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of make mutants: the mutants of a line, the order of a sample, and the verdict on a mutant (killed, survived, not counted)."""
import argparse
import contextlib
import fcntl
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]

import cover            # noqa: E402
import equivalent       # noqa: E402
import mutate           # noqa: E402
import part             # noqa: E402
import record           # noqa: E402
import report           # noqa: E402
import sample           # noqa: E402
import tap              # noqa: E402
from source import Source   # noqa: E402
import trial            # noqa: E402
from trial import Trial     # noqa: E402

CODE = """\
#include "limit.h"

/* a < b in a comment */
int clamp(int a)
{
	int unused = a * 2;

	if (above(a))
		return LIMIT;
	unused = 3;
	return a + 1;
}

int untested(int a)
{
	return a - 1;
}

int forgotten(int a)
{
	return a - 1;
}
"""
HEADER = """\
#define LIMIT 10

static inline int above(int a)
{
	return a > LIMIT;
}
"""
TEST = """\
#include <unistd.h>

#include "../code/limit.h"

int clamp(int a);
int untested(int a);

int main(void)
{
	if (!access("fail", F_OK))
		return 1;
	untested(7);
	return clamp(5) != 6 || clamp(12) != 10 || above(3);
}
"""
MAKEFILE = """\
$(O)/clamp.o: code/clamp.c
	gcc $(CFLAGS) -MMD -MP -c -o $@ $<
$(O)/test_clamp.o: test/test_clamp.c
	gcc $(CFLAGS) -MMD -MP -c -o $@ $<
$(O)/test_clamp: $(O)/test_clamp.o
	gcc $(LDFLAGS) -o $@ $^ $(O)/libclamp.so
"""


class Small(part.Part):
    """A part of one source, one header and one test, which is built plain and with sanitizers."""

    name, folder = "small", "code"
    objects_in = {"cover": "cover", "plain": "plain", "san": "san"}

    def __init__(self, tree):
        super().__init__(tree)
        self.builds = {}
        for name, flags, ld in (("cover", part.COVER, "--coverage"), ("plain", part.PLAIN, ""),
                                ("san", "-fPIC " + part.SANITIZERS, part.SANITIZERS)):
            make = ["make", "O=" + name, "CFLAGS=" + flags, "LDFLAGS=" + ld]
            self.builds[name] = part.Build(self, name, make, name + "/libclamp.so", {"code/clamp.c": name + "/clamp.o"},
                                           (name + "/",))

    def tests(self):
        return [part.Test("%s/test_clamp" % suite, ["./%s/test_clamp" % build], build, link="%s/test_clamp" % build)
                for suite, build in (("unit", "plain"), ("san", "san"))]

    def counted(self, test):
        return None if test.build == "san" else part.Test(test.name, ["./cover/test_clamp"], "cover")

    def build(self, name):
        b = self.builds[name]
        os.makedirs(b.path(name), exist_ok=True)
        b.run(name + "/clamp.o")
        b.link(b.path(b.library))
        b.run(name + "/test_clamp")


def put(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mutants.")
        self.addCleanup(shutil.rmtree, self.folder)


class Lines(unittest.TestCase):
    """Test mutate.py and source.py."""

    def mutants(self, body):
        source = Source("x.c", "int f(int a)\n{\n%s\n}\n" % body)
        return [text.strip() for text in mutate.mutants(source, 3)]

    def test_relations(self):
        self.assertEqual(self.mutants("\tif (a < b)"), ["if (a <= b)", "if (a >= b)", "if (!(a < b))"])

    def test_arithmetic(self):
        self.assertEqual(self.mutants("\treturn a + b;"), ["return a - b;", "return 0;"])

    def test_logic(self):
        self.assertEqual(self.mutants("\treturn a && !b;"), ["return a || !b;", "return a && b;", "return 0;", "return !(a && !b);"])

    def test_constants(self):
        self.assertEqual(self.mutants("\treturn 0x10;"), ["return 0xf;", "return 0x11;"])
        self.assertEqual(self.mutants("\treturn 0600;"), ["return 0577;", "return 0601;"])
        self.assertEqual(self.mutants("\treturn 0;"), ["return 1;"])
        self.assertEqual(self.mutants("\treturn true;"), ["return false;"])
        self.assertEqual(self.mutants("\treturn -EINVAL;"), ["return 0;"])
        self.assertEqual(self.mutants("\treturn a ? b : c;"), ["return 0;", "return a ? c : b;"])

    def test_returned_values(self):
        for body in ("\treturn err;", "\treturn f(a, b);", "\treturn a->b;"):
            self.assertEqual(self.mutants(body), ["return 0;"], body)
        for body in ("\treturn NULL;", "\treturn ORNIC_ST_OK;"):
            self.assertEqual(self.mutants(body), [], body)

    def statements(self, body, number=3):
        source = Source("x.c", "int f(int a)\n{\n%s\n}\n" % body)
        return mutate.statements(source, number)

    def test_long_statements_are_removed(self):
        self.assertEqual(self.statements("\tf(a,\n\t  b);"), [(4, "\t;")])
        self.assertEqual(self.statements("\ta->b = c +\n\t       d;"), [(4, "\t;")])
        for body in ("\tlog_err(a,\n\t\tb);", "\tint b = c +\n\t\td;", "\tf(a);\n\tg(b);", "\treturn a +\n\t       b;"):
            self.assertEqual(self.statements(body), [], body)
        self.assertEqual(self.statements("\tf(a,\n\t  b);", 4), [])

    def test_long_conditions_are_negated(self):
        self.assertEqual(self.statements("\tif (a &&\n\t    (b || c))\n\t\tf();"), [(4, "\tif (!(a &&\n\t    (b || c)))")])
        self.assertEqual(self.statements("\twhile (a ||\n\t       b) {\n\t\tf();\n\t}"),
                         [(4, "\twhile (!(a ||\n\t       b)) {")])
        self.assertEqual(self.statements("\tif (a && b)\n\t\tf();"), [])

    def test_removal(self):
        self.assertEqual(self.mutants("\tf(a);"), [";"])
        self.assertEqual(self.mutants("\ta->b = c;"), [";"])
        self.assertEqual(self.mutants("\tbreak;"), [";"])

    def test_no_larger_allocation(self):
        """calloc(1, ...) does not become calloc(2, ...), which no test can notice."""
        self.assertEqual(self.mutants("\ta = calloc(1, sizeof(*a));"), ["a = calloc(0, sizeof(*a));", ";"])

    def test_never_removed(self):
        for body in ("\tint c;", "\tlog_warn(a);", "\tstruct a *b = c;", "\tuint8_t b = c;"):
            self.assertEqual(self.mutants(body), [], body)

    def test_strings_comments_and_includes_stay(self):
        for body in ('\tstrcpy_to("1 < 2"', "\t/* 1 < 2 */", "\t// 1 < 2", "\t'1'", "#include <1.h>", "#ifdef A1", "\tchar *p"):
            self.assertEqual(self.mutants(body), [], body)

    def test_functions_and_statements(self):
        source = Source("x.c", CODE)
        self.assertEqual([source.function(n) for n in (4, 8, 14, 16)], ["", "clamp", "", "untested"])
        self.assertEqual(source.statement(9), (8, 9))
        self.assertEqual(source.statement(10), (10, 10))


class Sampling(Folder):
    """Test sample.py, record.py and equivalent.py."""

    def setUp(self):
        super().setUp()
        put(self.folder, "code/clamp.c", CODE)

    def ids(self, seed):
        return [m.id for m in sample.mutants(self.folder, ["code/clamp.c"], seed)]

    def test_seed_decides(self):
        self.assertEqual(self.ids("1"), self.ids("1"))
        self.assertNotEqual(self.ids("1"), self.ids("2"))
        self.assertEqual(sorted(self.ids("1")), sorted(self.ids("2")))
        self.assertEqual(len(set(self.ids("1"))), len(self.ids("1")))

    def test_each_line_before_any_twice(self):
        lines = [m.line for m in sample.mutants(self.folder, ["code/clamp.c"], "1")]
        count = sample.count(self.folder, ["code/clamp.c"])
        self.assertEqual(len(set(lines[:count])), count)
        self.assertGreater(len(lines), count)

    def test_statement_is_replaced(self):
        """Lines after the statement keep their numbers, and an entry in the list of reviewed mutants has all of its lines."""
        put(self.folder, "code/clamp.c", "int f(int a)\n{\n\tg(a,\n\t  1,\n\t  2);\n\treturn a;\n}\n")
        found = [m for m in sample.mutants(self.folder, ["code/clamp.c"], "1") if m.last != m.line]
        self.assertEqual([(m.line, m.last, m.after) for m in found], [(3, 5, "\t;")])
        self.assertEqual(found[0].text(), "int f(int a)\n{\n\t;\n\n\n\treturn a;\n}\n")
        self.assertEqual(found[0].diff(), "-\tg(a,\n-\t  1,\n-\t  2);\n+\t;")
        put(self.folder, "list", "code/clamp.c f\n-\tg(a,\n-\t  1,\n-\t  2);\n+\t;\n= The result is not used.\n")
        reviewed = equivalent.read(os.path.join(self.folder, "list"))
        self.assertIn(equivalent.key(found[0]), reviewed)

    def test_id_has_no_line_number(self):
        before = sorted(self.ids("1"))
        put(self.folder, "code/clamp.c", "\n\n" + CODE)
        self.assertEqual(before, sorted(self.ids("1")))

    def test_results_are_reused(self):
        """A kill is reused while file and killing test are unchanged, a survivor while the file and all tests are."""
        path = os.path.join(self.folder, "result.json")
        first, second = list(sample.mutants(self.folder, ["code/clamp.c"], "1"))[:2]
        kept = record.Record(path, "1")
        now = {"unit/test_clamp": "one"}
        kept.add(first, "code", "tests", now, {"state": "killed", "by": "unit/test_clamp: status 1", "test": "unit/test_clamp",
                                               "seconds": 1})
        kept.add(second, "code", "tests", now, {"state": "survived", "by": "", "test": "", "seconds": 1})
        again = record.Record(path, "1")
        self.assertEqual(again.recall(first, "code", "more tests", now)["state"], "killed")
        self.assertEqual(again.recall(second, "code", "tests", now)["state"], "survived")
        self.assertIsNone(again.recall(second, "code", "more tests", now))
        self.assertIsNone(again.recall(first, "other code", "tests", now))
        self.assertEqual([m["id"] for m in again.last], [first.id, second.id])
        # the test that killed it has changed, or is gone
        self.assertIsNone(again.recall(first, "code", "tests", {"unit/test_clamp": "two"}))
        self.assertIsNone(again.recall(first, "code", "tests", {}))

    def test_only_the_last_run_is_reported(self):
        path = os.path.join(self.folder, "result.json")
        first, second = list(sample.mutants(self.folder, ["code/clamp.c"], "1"))[:2]
        for mutant in (first, second):
            kept = record.Record(path, "1")
            kept.add(mutant, "code", "tests", {}, {"state": "killed", "by": "unit/test_clamp", "seconds": 1})
        again = record.Record(path, "1")
        self.assertEqual([m["id"] for m in again.last], [second.id])
        self.assertEqual(set(again.known), {first.id, second.id})

    def test_reviewed_by_content(self):
        put(self.folder, "list", "# why\ncode/clamp.c clamp\n-\treturn a + 1;\n+\treturn a - 1;\n= The caller does not look.\n")
        reviewed = equivalent.read(os.path.join(self.folder, "list"))
        put(self.folder, "code/clamp.c", "\n\n" + CODE)
        found = [m for m in sample.mutants(self.folder, ["code/clamp.c"], "1") if equivalent.key(m) in reviewed]
        self.assertEqual([m.after for m in found], ["\treturn a - 1;"])

    def test_reviewed_without_reason(self):
        put(self.folder, "list", "code/clamp.c clamp\n-a\n+b\n=\n")
        with self.assertRaises(equivalent.Malformed):
            equivalent.read(os.path.join(self.folder, "list"))

    def test_reviewed_twice(self):
        put(self.folder, "list", "code/clamp.c clamp\n" + 2 * "-a\n+b\n= The caller does not look.\n")
        with self.assertRaises(equivalent.Malformed):
            equivalent.read(os.path.join(self.folder, "list"))

    def test_reviewed_lines_exist(self):
        wrong = []
        for (path, function, before, _), reason in equivalent.read(os.path.join(HERE, "equivalent.txt")).items():
            with open(os.path.join(TOP, path), encoding="utf-8") as f:
                source = Source(path, f.read())
            rows = before.count("\n") + 1
            count = sum(equivalent.text_of("\n".join(source.lines[n - 1:n - 1 + rows])) == before and source.function(n) == function
                        for n in range(1, len(source.lines) + 1))
            said = re.match(r"(\d+) lines: ", reason)
            if count != (int(said.group(1)) if said else 1):
                wrong.append("%s %s: %s: %d lines" % (path, function, before, count))
        self.assertEqual(wrong, [])


class Trials(Folder):
    """Build and mutate a small tree."""

    def setUp(self):
        super().setUp()
        for name, text in (("code/clamp.c", CODE), ("code/limit.h", HEADER), ("test/test_clamp.c", TEST), ("Makefile", MAKEFILE)):
            put(self.folder, name, text)
        self.part = Small(self.folder)
        for build in ("plain", "san"):
            self.part.build(build)
        self.map = cover.Map(self.part, os.path.join(self.folder, "map"), lambda text: None)
        self.map.make()
        self.trial = Trial(self.part, self.map)

    def state(self, before, after, path="code/clamp.c", function=""):
        """Replace the line @before of a file and try that mutant. Return its state and the reason of a kill."""
        with open(os.path.join(self.folder, path), encoding="utf-8") as f:
            source = Source(path, f.read())
        line = [n for n, text in enumerate(source.lines, 1) if text.strip() == before and function in ("", source.function(n))][0]
        result = self.trial.run(sample.Mutant(source, line, "\t" + after))
        return result["state"], result["by"]

    def test_killed(self):
        self.assertEqual(self.state("return a + 1;", "return a - 1;"), ("killed", "unit/test_clamp: status 1"))

    def test_survives(self):
        self.assertEqual(self.state("return a - 1;", "return a + 1;", function="untested"), ("survived", ""))

    def test_failing_without_the_mutant_is_no_kill(self):
        put(self.folder, "fail", "")
        self.assertEqual(self.state("return a + 1;", "return a - 1;"), ("survived", ""))
        self.assertEqual(self.trial.doubtful, {"unit/test_clamp": 1, "san/test_clamp": 1})

    def test_slow_without_the_mutant_is_no_kill(self):
        """passes() is false for a test that needs its whole time limit without the mutant, so its timeouts are no kills."""
        test = self.trial.tests["unit/test_clamp"]
        self.assertTrue(self.trial.passes(test, 100))
        self.assertFalse(self.trial.passes(test, 0.0001))

    def test_time_is_over(self):
        """A mutant survives after trial.ENOUGH seconds, and its result has the number of tests that were not tried."""
        self.addCleanup(setattr, trial, "ENOUGH", trial.ENOUGH)
        trial.ENOUGH = -1
        self.assertEqual(self.state("return a + 1;", "return a - 1;"), ("survived", "2 of 2 tests not tried"))

    def test_not_reached(self):
        self.assertEqual(self.state("return a - 1;", "return a + 1;", function="forgotten"), ("survived", "no test reaches it"))

    def test_sanitizer_kills(self):
        state, by = self.state("return a - 1;", "return a << 40;", function="untested")
        self.assertEqual((state, by.split(":")[0]), ("killed", "san/test_clamp"))

    def test_same_object_code(self):
        self.assertEqual(self.state("unused = 3;", "unused = 4;"), ("equivalent", ""))

    def test_does_not_compile(self):
        self.assertEqual(self.state("unused = 3;", "unused = ;"), ("invalid", ""))

    def test_timeout_kills(self):
        state, by = self.state("unused = 3;", "while (a) __asm__(\"\");")
        self.assertEqual((state, by[:24]), ("killed", "unit/test_clamp: no end "))

    def test_inline_function(self):
        self.assertEqual(self.state("return a > LIMIT;", "return a < LIMIT;", path="code/limit.h")[0], "killed")
        self.assertEqual(self.state("return a > LIMIT;", "return a >= LIMIT;", path="code/limit.h"), ("survived", ""))

    def test_sources_stay_as_they_were(self):
        self.state("return a + 1;", "return a - 1;")
        with open(os.path.join(self.folder, "code/clamp.c"), encoding="utf-8") as f:
            self.assertEqual(f.read(), CODE)

    def test_failing_once_is_no_kill(self):
        """A test that fails with a mutant has to fail again. This one fails only while the file "once" exists."""
        put(self.folder, "test/test_clamp.c", TEST.replace('if (!access("fail", F_OK))', 'if (!unlink("once"))'))
        for build in ("plain", "san"):
            self.part.build(build)
        put(self.folder, "once", "")
        self.assertEqual(self.state("return a - 1;", "return a + 1;", function="untested"), ("survived", ""))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "once")))
        self.assertEqual(self.trial.doubtful, {})

    def test_same_code_in_a_later_build(self):
        """A mutant that differs in the first build counts, even if the build with sanitizers has the same object code."""
        before = trial.Trial.compile

        def compile_as(self, mutant, build):
            return before(self, mutant, build) if build == "plain" else "equivalent"
        self.addCleanup(setattr, trial.Trial, "compile", before)
        trial.Trial.compile = compile_as
        self.assertEqual(self.state("return a - 1;", "return a + 1;", function="untested"), ("survived", ""))
        trial.Trial.compile = lambda self, mutant, build: before(self, mutant, build) if build == "plain" else "invalid"
        self.assertEqual(self.state("return a - 1;", "return a + 1;", function="untested"), ("survived", ""))

    def tests_run(self):
        """Make a map again from the stored results. Return the names of the tests that it runs, and the map."""
        messages = []
        again = cover.Map(self.part, os.path.join(self.folder, "map"), messages.append)
        again.make()
        self.assertEqual(again.reached, {**self.map.reached, **again.reached})
        return [text.split(", ")[1] for text in messages if ", " in text], again

    def test_map_after_an_edit(self):
        """After an edit, the map runs the tests that run the edited file."""
        put(self.folder, "code/other.c", "int other(void)\n{\n\treturn 1;\n}\n")
        names, _ = self.tests_run()
        self.assertEqual(names, ["unit/test_clamp"])        # to learn which lines have code
        put(self.folder, "code/clamp.c", "\n" + CODE)
        for build in ("plain", "san"):
            self.part.build(build)
        names, again = self.tests_run()
        self.assertEqual(names, ["unit/test_clamp", "san/test_clamp"])
        self.assertIn(9, again.lines["code/clamp.c"])
        put(self.folder, "code/limit.h", HEADER + "\n")
        names, _ = self.tests_run()
        self.assertEqual(names, ["unit/test_clamp", "san/test_clamp"])

    def test_stamp_has_shared_files(self):
        """A result depends on the test and on the files that tests of its suite share, but not on other tests."""
        test = self.part.tests()[0]
        self.part.shared = "test_libornic_kernel.*"
        for name in ("unit/test_clamp.c", "unit/test_libornic_kernel.h", "lib/tap.py", "unit/lib/pair.c", "wire/vfu_device.c",
                     "unit/test_other.c"):
            put(self.folder, "selftests/" + name, "")
        names = [os.path.relpath(path, os.path.join(self.folder, "selftests")) for path in self.part.stamp_of(test)]
        self.assertEqual(names, ["lib/tap.py", "unit/lib/pair.c", "unit/test_clamp.c", "unit/test_libornic_kernel.h"])
        names = self.part.stamp_of(part.Test("wire/test_x.Y.z", [], "san"))
        self.assertIn(os.path.join(self.folder, "selftests/wire/vfu_device.c"), names)

    def test_map_is_kept(self):
        before = sorted(os.listdir(os.path.join(self.folder, "map")))
        shutil.rmtree(os.path.join(self.folder, "cover"))
        again = cover.Map(self.part, os.path.join(self.folder, "map"), lambda text: None)
        again.make()
        self.assertEqual(again.reached, self.map.reached)
        self.assertEqual(before, sorted(os.listdir(os.path.join(self.folder, "map"))))


class Reported(unittest.TestCase):
    def test_last_line(self):
        entries = [{"file": "a/x/1.c", "state": state} for state in ("killed", "killed", "killed", "survived", "equivalent")]
        entries += [{"file": "a/y/1.c", "state": "killed"}, {"file": "a/y/1.c", "state": "invalid"}]
        lines = subprocess.run([sys.executable, "-c", "import sys; sys.path.insert(0, %r); import report; report.summary(%r, '7')" %
                                (HERE, entries)], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(lines[-1], "mutants: 4 of 5 killed, 80.0 % (x 75 %, y 100 %; seed 7)")

    def test_share_of_nothing(self):
        self.assertEqual(report.share([]), "nothing tried")

    def test_percent(self):
        self.assertEqual(report.percent([{"state": "killed"}] * 3 + [{"state": "survived"}, {"state": "invalid"}]), 75)
        self.assertIsNone(report.percent([{"state": "invalid"}]))

    def test_unknown_file(self):
        done = subprocess.run([os.path.join(HERE, "mutants"), "--rev", "HEAD", "README.md"], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("README.md is no source", done.stderr)


def program():
    """The program as a module."""
    loader = importlib.machinery.SourceFileLoader("mutants_program", os.path.join(HERE, "mutants"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Program(Folder):
    """The choice of files, the number of mutants of each part, and the run of the provider's part."""

    def setUp(self):
        super().setUp()
        self.program = program()
        self.program.TOP = self.folder

    def git(self, *words):
        subprocess.run(["git", "-C", self.folder, "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True,
                       capture_output=True)

    def args(self, **given):
        """Return parsed arguments: defaults, and those given."""
        return argparse.Namespace(**{"file": [], "all": False, "rev": "HEAD", "work": "/w", "seed": "7", "goal": None, **given})

    def repository(self):
        for name in ("tools/ornicd/a.c", "tools/ornicd/x/b.c", "tools/ornicd/main.c", "tools/libornic/c.h", "README.md"):
            put(self.folder, name, "int a;\n")
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-qm", "one")

    def test_changed(self):
        self.repository()
        self.assertEqual(self.program.chosen(self.args()), [])
        put(self.folder, "tools/ornicd/a.c", "int b;\n")           # not committed
        put(self.folder, "tools/ornicd/x/new.c", "int b;\n")       # not even added
        put(self.folder, "tools/ornicd/main.c", "int b;\n")        # left out
        put(self.folder, "README.md", "b")
        self.assertEqual(self.program.chosen(self.args()), ["tools/ornicd/a.c", "tools/ornicd/x/new.c"])
        self.git("add", "-A")
        self.git("commit", "-qm", "two")
        self.assertEqual(self.program.chosen(self.args()), [])
        self.assertEqual(self.program.chosen(self.args(rev="HEAD~1")), ["tools/ornicd/a.c", "tools/ornicd/x/new.c"])
        with self.assertRaises(SystemExit):
            self.program.chosen(self.args(rev="nonsense"))

    def test_chosen(self):
        self.repository()
        everything = ["tools/libornic/c.h", "tools/ornicd/a.c", "tools/ornicd/x/b.c"]
        self.assertEqual(sorted(self.program.chosen(self.args(all=True))), everything)
        self.assertEqual(self.program.chosen(self.args(file=["tools/ornicd/x"])), ["tools/ornicd/x/b.c"])

    def test_split(self):
        self.assertEqual(self.program.split(100, {"daemon": 9000, "provider": 1000}), {"daemon": 90, "provider": 10})
        self.assertEqual(self.program.split(100, {"daemon": 9999, "provider": 1}), {"daemon": 100, "provider": 1})
        self.assertEqual(self.program.split(100, {"daemon": 50, "provider": 0}), {"daemon": 100, "provider": 0})
        self.assertEqual(self.program.split(100, {"daemon": 0, "provider": 0}), {"daemon": 0, "provider": 0})

    def lab(self, status):
        """Replace tools/lab/lab by a script that stores its arguments and exits with @status. Write the result of a run."""
        put(self.folder, "tools/lab/lab", "#!/bin/sh\necho \"$@\" > %s/called\nexit %d\n" % (self.folder, status))
        os.chmod(os.path.join(self.folder, "tools/lab/lab"), 0o755)
        put(self.folder, "provider-7.json", json.dumps({"seed": "7", "now": ["b"], "mutants": [{"id": "a"}, {"id": "b"}]}))

    def test_in_build_root(self):
        self.lab(0)
        entries = self.program.in_build_root(self.args(work=self.folder), "provider", ["tools/libornic/c.h"], 12)
        self.assertEqual(entries, [{"id": "b"}])
        with open(os.path.join(self.folder, "called"), encoding="utf-8") as f:
            self.assertEqual(f.read().split(), ["buildroot-run", "--", "python3", os.path.join(HERE, "mutants"), "--part",
                                                "provider", "--seed", "7", "--number", "12", "--work", self.folder, "tools/libornic/c.h"])

    def test_build_root_fails(self):
        self.lab(3)
        with self.assertRaises(SystemExit) as raised:
            self.program.in_build_root(self.args(work=self.folder), "provider", ["tools/libornic/c.h"], 12)
        self.assertEqual(raised.exception.code, 3)

    def run_main(self, *words):
        """Run main() with a result of 3 killed mutants of 4."""
        entries = [{"id": str(n), "file": "tools/ornicd/a.c", "state": "killed" if n < 3 else "survived", "line": 1, "function": "",
                    "by": "", "before": "", "after": ""} for n in range(4)]
        self.repository()
        put(self.folder, "tools/ornicd/a.c", CODE)
        self.program.try_part = lambda args, name, files, wanted: entries
        self.program.in_build_root = lambda args, name, files, wanted: []
        argv = sys.argv
        self.addCleanup(setattr, sys, "argv", argv)
        sys.argv = ["mutants", "--all", *words]
        with contextlib.redirect_stdout(io.StringIO()):
            self.program.main()

    def test_goal(self):
        self.run_main("--goal", "75")

    def test_below_the_goal(self):
        with self.assertRaises(SystemExit) as raised:
            self.run_main("--goal", "75.1")
        self.assertIn("goal", str(raised.exception.code))


class Alone(Folder):
    def test_one_run_at_a_time(self):
        with open(os.path.join(self.folder, "lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = subprocess.run([os.path.join(HERE, "mutants"), "--work", self.folder, "-n", "1", "tools/ornicd/loop.c"],
                                  capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("another run uses " + self.folder, done.stderr)


if __name__ == "__main__":
    tap.main()
