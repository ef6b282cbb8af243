# SPDX-License-Identifier: GPL-2.0
"""A seeded random order of mutants: each line has the same chance, however many mutants it has."""
import hashlib
import os
import random
import re

import mutate
from source import Source


class Mutant:
    """A source with one line or statement replaced. Its id has no line number, so that it survives edits elsewhere in the file."""

    def __init__(self, source, line, after, last=None):
        self.source = source
        self.line = line
        self.last = last or line
        self.after = after
        self.before = "\n".join(source.lines[line - 1:self.last])
        self.function = source.function(line)
        named = "\0".join((source.path, self.function, self.before, after, str(source.place(line))))
        self.id = hashlib.sha256(named.encode()).hexdigest()[:16]

    def name(self):
        """The function or macro that is changed, "" if it is neither."""
        macro = re.match(r"#\s*define\s+(\w+)", self.before)
        return self.function or (macro.group(1) if macro else "")

    def text(self):
        return self.source.with_lines(self.line, self.last, self.after)

    def diff(self):
        return "\n".join(["-" + t for t in self.before.split("\n")] + ["+" + t for t in self.after.split("\n")])


def mutants(tree, paths, seed):
    """Yield all mutants of some files in the order of a seed: first one mutant of each line, then the second of each, and so on."""
    lines = []
    for path in sorted(paths):
        with open(os.path.join(tree, path), encoding="utf-8") as f:
            source = Source(path, f.read())
        for number in range(1, len(source.lines) + 1):
            made = mutate.every(source, number)
            if made:
                lines.append((source, number, made))
    chance = random.Random(seed)
    chance.shuffle(lines)
    for _, _, made in lines:
        chance.shuffle(made)
    depth = 0
    while any(len(made) > depth for _, _, made in lines):
        for source, number, made in lines:
            if len(made) > depth:
                last, text = made[depth]
                yield Mutant(source, number, text, last)
        depth += 1


def count(tree, paths):
    """Return the number of lines that have mutants."""
    found = 0
    for path in paths:
        with open(os.path.join(tree, path), encoding="utf-8") as f:
            source = Source(path, f.read())
        found += sum(bool(mutate.every(source, n)) for n in range(1, len(source.lines) + 1))
    return found
