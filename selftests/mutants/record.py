# SPDX-License-Identifier: GPL-2.0
"""The results of a sample as JSON. They are on disk after each mutant, so that an interrupted run is continued."""
import json

import tree

COUNTED = ("killed", "survived")


class Record:
    """The results of the mutants of a seed, for one part."""

    def __init__(self, path, seed):
        self.path = path
        self.seed = seed
        self.known = {}
        self.last = []          # of the run before, in its order
        try:
            with open(path, encoding="utf-8") as f:
                stored = json.load(f)
            self.known = {m["id"]: m for m in stored["mutants"]}
            self.last = [self.known[i] for i in stored["now"]]
        except (OSError, ValueError, KeyError):
            pass
        self.now = []           # of this run, in the sample's order

    def recall(self, mutant, code, tests, stamp_of):
        """
        Return the result of an earlier run; None if the mutated file has changed, if the mutant survived and any test has changed,
        or if the test that killed it has changed or is gone. @code, @tests: stamps of the file and of all tests; @stamp_of: {test:
        stamp}.
        """
        found = self.known.get(mutant.id)
        if not found or found["code"] != code or (found["state"] == "survived" and found["tests"] != tests):
            return None
        if found["state"] == "killed" and (not found.get("stamp") or stamp_of.get(found.get("test")) != found["stamp"]):
            return None
        return {key: found[key] for key in ("state", "by", "test", "seconds") if key in found}

    def add(self, mutant, code, tests, stamp_of, result):
        entry = {"id": mutant.id, "file": mutant.source.path, "line": mutant.line, "function": mutant.function,
                 "before": mutant.before, "after": mutant.after, "code": code, "tests": tests,
                 "stamp": stamp_of.get(result.get("test")), **result}
        self.known[mutant.id] = entry
        self.now.append(entry)
        tree.write(self.path, json.dumps({"seed": self.seed, "now": [m["id"] for m in self.now],
                                          "mutants": list(self.known.values())}, indent=1))

    def counted(self):
        return sum(m["state"] in COUNTED for m in self.now)
