# SPDX-License-Identifier: GPL-2.0
"""The test map: the lines that each test runs, by gcc's counters, and the time that it takes without counters.

Each test is run once with counters, and the result is stored in a folder. The test is run again only if the test itself, a file
that the tests share, a header, or a source that the test runs has changed.
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
        self.stamps = {}        # file: stamp, of sources and headers

    def make(self):
        self.stamps = {os.path.relpath(path, self.part.tree): tree.stamp([path]) for path in
                       [os.path.join(self.part.tree, s) for s in self.part.sources()] +
                       glob.glob(os.path.join(self.part.tree, "include", "**", "*.h"), recursive=True)}
        tests = self.part.tests()
        known = {}
        for test in tests:
            known[test.name] = self._known(test, known)
        self._see_all_lines(tests, known)
        missing = [t for t in tests if known[t.name] is None]
        if any(self.part.counted(t) for t in missing):
            self.say("test map: building with counters")
            self.part.build("cover")
        for number, test in enumerate(missing, 1):
            self.say("test map: %d of %d, %s" % (number, len(missing), test.name))
            known[test.name] = self._ask(test, known)
            if not known[test.name]["how"]:
                tree.write(self._file(test), json.dumps(known[test.name]))
        for test in tests:
            self._take(test, known)

    def _see_all_lines(self, tests, known):
        """If no stored result covers the present content of a file, run the fastest test again to learn which lines have code."""
        seen = {name for answer in known.values() if answer for name, stamp in answer["files"].items()
                if stamp == self.stamps.get(name)}
        counted = [t for t in tests if known[t.name] and self.part.counted(t)]
        if counted and any(name.endswith(".c") and name not in seen for name in self.stamps):
            known[min(counted, key=lambda t: known[t.name]["seconds"]).name] = None

    def _file(self, test):
        return os.path.join(self.kept, "%s-%s.json" % (test.name.replace("/", "."), tree.stamp(self.part.stamp_of(test))))

    def _known(self, test, known):
        """
        Return the stored result of a test, None if a header or a file that it runs has changed. A test without counters uses
        the lines of its twin, so its result lapses with the twin's.
        """
        try:
            with open(self._file(test), encoding="utf-8") as f:
                answer = json.load(f)
        except (OSError, ValueError):
            return None
        twin = self.part.twin(test.name)
        if twin != test.name and (not known.get(twin) or known[twin]["needs"] != answer.get("needs")):
            return None
        return answer if self._needs(answer.get("needs", {"?": ""})) == answer.get("needs") else None

    def _needs(self, names):
        """Return the stamps of the files on which a result depends: @names, the sources that were run, and all headers."""
        return {name: stamp for name, stamp in self.stamps.items() if name in names or name.endswith(".h")}

    def _ask(self, test, known):
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
        answer["files"] = {name: self.stamps[name] for name in answer["lines"] if name in self.stamps}
        twin = known.get(self.part.twin(test.name))
        answer["needs"] = twin["needs"] if not counted and twin else \
            self._needs([name for name, lines in answer["reached"].items() if lines])
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
            if lines["files"].get(name) == self.stamps.get(name):       # else older than an edit, of a file that the test does not run
                self.lines.setdefault(name, set()).update(numbers)

    def tests_of(self, source, number):
        """Return the names of the tests that run the statement of a line; outside of functions, those that run any line of the file."""
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
