# SPDX-License-Identifier: GPL-2.0
"""Reviewed mutants: changes that no test can notice, each with the reason, in equivalent.txt.

An entry is matched by file, function and text, so it stays when code elsewhere moves and lapses when its line changes. A statement
of several lines has a - or + for each:

    tools/ornicd/loop.c loop_run
    -	while (!l->stopped) {
    +	while (l->stopped != 1) {
    = Why no caller and no peer can see the difference.

If several lines of the function have the text, the reason is checked for each of them and begins with their number, "2 lines: ".
"""


class Malformed(Exception):
    """A list that does not have the form above."""


def joined(lines, more):
    """Append a line to the lines of a statement, without white space at its ends."""
    return more.strip() if lines is None else lines + "\n" + more.strip()


def text_of(lines):
    return "\n".join(line.strip() for line in lines.strip().split("\n"))


def read(path):
    """Return {(file, function, before, after): reason}."""
    entries, head, before, after = {}, None, None, None
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f.read().splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            if line[0] == "-":
                before, after = joined(before if after is None else None, line[1:]), None
            elif line[0] == "+":
                after = joined(after, line[1:])
            elif line[0] == "=":
                if head is None or before is None or after is None or not line[1:].strip():
                    raise Malformed("%s:%d: file, -, + and = with a reason make an entry" % (path, number))
                if (*head, before, after) in entries:
                    raise Malformed("%s:%d: the list has this entry already" % (path, number))
                entries[(*head, before, after)] = line[1:].strip()
                before = after = None
            else:
                words = line.split()
                if len(words) > 2:
                    raise Malformed("%s:%d: name a file and a function" % (path, number))
                head = (words[0], words[1] if len(words) == 2 else "")
    return entries


def key(mutant):
    return mutant.source.path, mutant.function, text_of(mutant.before), text_of(mutant.after)
