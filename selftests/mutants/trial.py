# SPDX-License-Identifier: GPL-2.0
"""One mutant: compile it, compare its object code, link it, run the tests that reach it until one fails."""
import os
import shutil
import subprocess
import time

import running
from part import Failed

PATIENCE, TIMES = 3, 8      # seconds, and multiples of its usual time, that a test may take
MARGIN = 3                  # without the mutant, a test must end in 1/MARGIN of its limit
ENOUGH = 60                 # seconds in which tests of one mutant in one build begin
FIRST = "plain"             # the build whose object code is compared


class Trial:
    """The tests of one part, and the numbers that decide their order."""

    def __init__(self, part, test_map):
        self.part = part
        self.map = test_map
        self.tests = {t.name: t for t in part.tests() if t.name in test_map.seconds}
        self.kills = {}         # (file, test): mutants of the file that the test killed
        self.doubtful = {}      # test: how often it failed with a mutant, and then without the mutant, too

    def order(self, source, number, build):
        """Return the tests of one build that reach a line, in ascending order of their time per expected kill.

        A test is more likely to kill if its name has the name of the file or of its folder. Without this, the time can run out before
        that test begins.
        """
        folder, stem = os.path.split(os.path.splitext(source.path)[0])
        words = {stem, os.path.basename(folder)}
        names = [n for n in self.map.tests_of(source, number) if n in self.tests and self.tests[n].build == build]

        def cost(name):
            reached = self.map.reached[name]
            likely = any("_%s_" % word in "_%s_" % name for word in words)
            share = len(reached.get(source.path, ())) / (1 + sum(map(len, reached.values())))
            return (0.05 + self.map.seconds[name]) / (0.02 + share + likely + self.kills.get((source.path, name), 0))
        return [self.tests[n] for n in sorted(names, key=lambda n: (cost(n), n))]

    def run(self, mutant):
        """Return {state, by, test, seconds}: killed, survived, equivalent or invalid, and the test and the reason of a kill."""
        start = time.monotonic()
        tried = left = 0
        state, by, test = "survived", "", ""
        for build in self.part.steps():
            tests = self.order(mutant.source, mutant.line, build)
            if build == FIRST or tests:
                made = self.compile(mutant, build)
                if not isinstance(made, dict) and build != FIRST:
                    continue        # it is a mutant in the first build; without another object this one cannot add a kill
                if not isinstance(made, dict):
                    state = made
                    break
                test, by, begun = self.kill(mutant, build, tests, made, time.monotonic() + ENOUGH)
                tried += begun
                left += len(tests) - begun
                if by:
                    state = "killed"
                    break
        if state == "survived":
            by = "" if tried and not left else "%d of %d tests not tried" % (left, tried + left) if left else "no test reaches it"
        return {"state": state, "by": by, "test": test, "seconds": round(time.monotonic() - start, 2)}

    def folder(self, build):
        path = os.path.join(self.part.tree, "mutant", build)
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        return path

    def compile(self, mutant, build):
        """Return {object: the mutant's object} for all that differ; "invalid" or "equivalent" if the trial ends here."""
        b = self.part.builds[build]
        path = mutant.source.path
        users = {b.objects[path]: path} if path in b.objects else b.users(path, mutant.name())
        folder = self.folder(build)
        changed = {}
        real = os.path.join(self.part.tree, path)
        times = os.stat(real)
        try:
            with open(real, "w", encoding="utf-8") as f:
                f.write(mutant.text())
            for target, source in users.items():
                out = os.path.join(folder, target.replace("/", "_"))
                words = b.compiler(target, source)
                words[words.index("-o") + 1] = out
                words = [w for w in words if w not in ("-MMD", "-MP", "ccache")]
                if subprocess.run([*words, "-w"], cwd=self.part.tree, capture_output=True).returncode:
                    return "invalid"
                if not same(out, b.path(target)):
                    changed[target] = out
        finally:
            with open(real, "w", encoding="utf-8") as f:
                f.write(mutant.source.text)
            os.utime(real, ns=(times.st_atime_ns, times.st_mtime_ns))
        return changed or "equivalent"

    def kill(self, mutant, build, tests, changed, end):
        """Run tests until one fails or the time is over. Return its name and kind of failure, or "", and the number of tests begun."""
        b = self.part.builds[build]
        folder = os.path.join(self.part.tree, "mutant", build)
        b.link(os.path.join(folder, os.path.basename(b.library)), changed)
        for number, test in enumerate(tests):
            if time.monotonic() > end:
                return "", "", number
            program = self.relinked(test, b, changed, folder)
            limit = PATIENCE + TIMES * self.map.seconds[test.name]
            how, _ = running.run(program, self.part.tree, folder, limit)
            if how:         # run it again: one failure may be an accident
                how, _ = running.run(program, self.part.tree, folder, limit)
            if how and not self.passes(test, limit):
                self.doubtful[test.name] = self.doubtful.get(test.name, 0) + 1
                continue
            if how:
                key = (mutant.source.path, test.name)
                self.kills[key] = self.kills.get(key, 0) + 1
                return test.name, "%s: %s" % (test.name, how), number + 1
        return "", "", len(tests)

    def passes(self, test, limit):
        """Return true if the test passes without the mutant, in the same environment and in less than limit / MARGIN seconds."""
        own = os.path.dirname(self.part.builds[test.build].path(self.part.builds[test.build].library))
        how, seconds = running.run(test, self.part.tree, own, limit)
        return not how and seconds * MARGIN < limit

    def relinked(self, test, b, changed, folder):
        """Return the test, linked again if its program contains the mutated code: a merged library or an inline function."""
        if not test.link:
            return test
        instead = dict(changed)
        if b.merged:
            instead[b.path(b.library)] = os.path.join(folder, os.path.basename(b.library))
        words = b.command(test.link, self.part.linking(b))
        if not any(os.path.normpath(w) in instead for w in words):
            return test
        out = os.path.join(folder, os.path.basename(test.link))
        words[words.index("-o") + 1] = out
        words = [instead.get(os.path.normpath(w), w) for w in words]
        done = subprocess.run(words, cwd=self.part.tree, capture_output=True, text=True)
        if done.returncode:
            raise Failed("cannot link %s: %s" % (test.name, done.stderr[-2000:]))
        return type(test)(test.name, [out], test.build, test.env, test.link)


def same(a, b):
    """Return true if two files have the same content."""
    with open(a, "rb") as f, open(b, "rb") as g:
        return f.read() == g.read()
