# SPDX-License-Identifier: GPL-2.0
"""The text of a C file in kernel style, without comments and strings, and the function and the statement of each line."""
import re

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
NAME = re.compile(r"(\w+)\s*\(")
ENDS = (";", "{", "}", ":")


def blank(match):
    """Spaces of the same length; line ends stay, so that columns and line numbers do."""
    return re.sub(r"[^\n]", " ", match.group(0))


class Source:
    """One file. Lines are numbered from 1, as compilers do."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.lines = text.split("\n")
        self.code = TOKEN.sub(blank, text).split("\n")
        self.functions = {}             # line: (name, first line, last line)
        self._find_functions()

    def _find_functions(self):
        """Kernel style: the brackets of a body stand in the first column, the name in a line that begins there."""
        start = None
        for number, line in enumerate(self.code, 1):
            if line.startswith("{"):
                start = number
            elif line.startswith("}") and start:
                name = self._name_before(start)
                if name and not line.rstrip().endswith(("};", ",")):
                    for inside in range(start, number + 1):
                        self.functions[inside] = (name, start, number)
                start = None

    def _name_before(self, start):
        for number in range(start - 1, max(start - 8, 0), -1):
            line = self.code[number - 1]
            found = NAME.search(line)
            if found and line[:1].strip():
                return found.group(1)
        return None

    def function(self, number):
        """Name of the function around a line, "" outside of all."""
        return self.functions.get(number, ("",))[0]

    def statement(self, number):
        """First and last line of the statement around a line."""
        first = last = number
        while first > 1 and not self.ends(first - 1):
            first -= 1
        while last < len(self.code) and not self.ends(last):
            last += 1
        return first, last

    def ends(self, number):
        """Return true if a statement, a declaration or a directive ends with this line."""
        line = self.code[number - 1].rstrip()
        return not line or line.endswith(ENDS) or line.startswith("#")

    def place(self, number):
        """Return the number of earlier lines of the function with the same text, which names a line without its line number."""
        text = self.lines[number - 1]
        first = self.functions[number][1] if number in self.functions else 1
        return sum(line == text for line in self.lines[first - 1:number - 1])

    def with_lines(self, first, last, text):
        """Return the file's text with some lines replaced. Pad with empty lines, so that later lines keep their numbers."""
        return "\n".join(self.lines[:first - 1] + [text] + [""] * (last - first - text.count("\n")) + self.lines[last:])
