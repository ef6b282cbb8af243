# SPDX-License-Identifier: GPL-2.0
"""The test map: which lines each test runs, by gcc's counters, and how long it takes without them.

A test is asked once for each content of the sources, of the test and of what the tests share; the answers are kept in a folder.
"""
import glob
import json
import os
import subprocess

import running
import tree

LONGEST = 300           # seconds for a test of unchanged code


class Map:
    """Lines by test, for one part."""

    def __init__(self, part, kept, say):
        self.part = part
        self.kept = kept
        self.say = say
        self.reached = {}       # test: {file: set of lines}
        self.lines = {}         # file: lines that have code
        self.seconds = {}       # test: seconds of a good run
        self.broken = []        # tests that fail without a mutant

    def make(self):
        shared = [os.path.join(self.part.tree, s) for s in self.part.sources()] + \
            glob.glob(os.path.join(self.part.tree, "include", "**", "*.h"), recursive=True)
        code = tree.stamp(shared)
        tests = self.part.tests()
        known = {t.name: self._known(t, code) for t in tests}
        missing = [t for t in tests if known[t.name] is None]
        if any(self.part.counted(t) for t in missing):
            self.say("test map: building with counters")
            self.part.build("cover")
        for number, test in enumerate(missing, 1):
            self.say("test map: %d of %d, %s" % (number, len(missing), test.name))
            known[test.name] = self._ask(test)
            if not known[test.name]["how"]:
                tree.write(self._file(test, code), json.dumps(known[test.name]))
        for test in tests:
            self._take(test, known)

    def _file(self, test, code):
        return os.path.join(self.kept, "%s-%s-%s.json" % (test.name.replace("/", "."), code, tree.stamp(self.part.stamp_of(test))))

    def _known(self, test, code):
        try:
            with open(self._file(test, code), encoding="utf-8") as f:
                return json.load(f)
        except (OSError, ValueError):
            return None

    def _ask(self, test):
        own = os.path.dirname(self.part.builds[test.build].path(self.part.builds[test.build].library))
        how, seconds = running.run(test, self.part.tree, own, LONGEST)
        counted = self.part.counted(test)
        answer = {"how": how, "seconds": seconds, "reached": {}, "lines": {}}
        if counted and not how:
            cover = self.part.builds["cover"]
            root = cover.path(self.part.objects_in["cover"])
            for path in self._counters(root):
                os.remove(path)
            running.run(counted, self.part.tree, os.path.dirname(cover.path(cover.library)), LONGEST)
            self._read(root, answer)
        return answer

    @staticmethod
    def _counters(root):
        return glob.glob(os.path.join(root, "**", "*.gcda"), recursive=True)

    def _read(self, root, answer):
        done = subprocess.run(["gcov", "--json-format", "--stdout", *self._counters(root)], cwd=self.part.tree,
                              capture_output=True, text=True, check=True)
        for text in done.stdout.splitlines():
            for entry in json.loads(text)["files"] if text.strip() else ():
                name = os.path.relpath(os.path.join(self.part.tree, entry["file"]), self.part.tree)
                if name.startswith(self.part.folder + "/"):
                    numbers = {line["line_number"]: line["count"] for line in entry["lines"]}
                    for key, chosen in (("lines", numbers), ("reached", [n for n in numbers if numbers[n]])):
                        answer[key][name] = sorted(set(answer[key].get(name, [])) | set(chosen))

    def _take(self, test, known):
        answer = known[test.name]
        lines = known.get(self.part.twin(test.name), answer)
        if answer["how"]:
            self.broken.append("%s: %s" % (test.name, answer["how"]))
            return
        self.seconds[test.name] = answer["seconds"]
        self.reached[test.name] = {name: set(numbers) for name, numbers in lines["reached"].items()}
        for name, numbers in lines["lines"].items():
            self.lines.setdefault(name, set()).update(numbers)

    def tests_of(self, source, number):
        """Names of the tests that run the statement of a line; for what is no statement, those that run any of the file."""
        coded = self.lines.get(source.path, set())
        first, last = source.statement(number)
        wanted = coded & set(range(first, last + 1))
        if not wanted and number in source.functions:
            _, first, last = source.functions[number]
            wanted = coded & set(range(first, last + 1))
        elif number not in source.functions:
            wanted = coded
        if not coded:           # a header without code: anything may depend on it
            return set(self.reached)
        return {name for name, files in self.reached.items() if files.get(source.path, set()) & wanted}
