# SPDX-License-Identifier: GPL-2.0
"""All mutants of one line of C, or of a statement that begins there: each has one small mistake in it."""
import re

# Binary operators have a space on both sides in kernel style, unary ones do not.
SWAPS = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",),
    "+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "%": ("*",), "&": ("|",), "|": ("&",), "^": ("&",),
    "<<": (">>",), ">>": ("<<",), "&&": ("||",), "||": ("&&",),
    "+=": ("-=", "="), "-=": ("+=", "="), "|=": ("&=", "="), "&=": ("|=", "="), "<<=": (">>=",), ">>=": ("<<=",),
}
BINARY = re.compile(r"(?<=\s)(%s)(?=\s|$)" % "|".join(sorted(map(re.escape, SWAPS), key=len, reverse=True)))
STEP = re.compile(r"\+\+|--")
NUMBER = re.compile(r"(?<![\w.])(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)\b(?!\.)")
TRUTH = re.compile(r"\b(true|false)\b")
NOT = re.compile(r"!(?=[\w(])")
CONDITION = re.compile(r"\b(if|while) \(")
ERROR = re.compile(r"\breturn -E\w+;")
RETURNED = re.compile(r"\breturn ([^;]*(?:&&|\|\||[<>=!]=|!\w)[^;]*);")
VALUE = re.compile(r"\breturn (?!-?\w+;|-E\w+;|!)([^;]+);|\breturn (?!true\b|false\b|NULL\b|[\dA-Z])(\w+);")
CHOICE = re.compile(r" \? ([^?:]+) : ([^?:;,]+?)(?=[;,)])")
CALL = re.compile(r"^(\s+)(?:[\w>.\[\]*()-]+ (?:=|[-+|&^]=|<<=|>>=) .*|\*?[\w>.\[\]-]+(?:\+\+|--)|[\w>.-]+\(.*\));\s*$")
JUMP = re.compile(r"^(\s+)(?:break|continue|goto \w+|return);\s*$")
# Messages are not tested, and an assertion is a test itself: neither is removed. A declaration cannot be.
KEPT = re.compile(r"^\s+(?:log_\w+|assert|_Static_assert|static_assert|va_end|__\w+)\(")
DECLARES = re.compile(r"^\s+(?:(?:static|const|struct|union|enum|unsigned|signed|volatile) |"
                      r"(?:\w+_t|int|char|bool|long|short|size_t|void|double|__\w+\d+) )")
# No test can notice that an allocation has room for a second object.
ROOMIER = re.compile(r"\bcalloc\(2, sizeof")
DEAD = re.compile(r"^\s*#(?!\s*define\s+\w+\s)|\b_?static_assert\b|_Static_assert|__attribute__")


def changed(line, start, end, text):
    return line[:start] + text + line[end:]


def closing(code, opening):
    """Return the column of the bracket that closes the one at column @opening, None if it is in another line."""
    depth = 0
    for column in range(opening, len(code)):
        depth += {"(": 1, ")": -1}.get(code[column], 0)
        if not depth:
            return column
    return None


def operators(line, code):
    for found in BINARY.finditer(code):
        for other in SWAPS[found.group(1)]:
            yield changed(line, *found.span(), other)
    for found in STEP.finditer(code):
        yield changed(line, *found.span(), "--" if found.group(0) == "++" else "++")
    for found in NOT.finditer(code):
        yield changed(line, *found.span(), "")


def constants(line, code):
    for found in NUMBER.finditer(code):
        text = found.group(1).lower()
        base, form = (16, "0x%x") if text.startswith("0x") else (8, "0%o") if text[0] == "0" and len(text) > 1 else (10, "%d")
        value = int(text, base)
        for other in sorted({value + 1, value - 1 if value else 1}):
            yield changed(line, *found.span(), form % other + found.group(2))
    for found in TRUTH.finditer(code):
        yield changed(line, *found.span(), "false" if found.group(1) == "true" else "true")
    for found in ERROR.finditer(code):
        yield changed(line, *found.span(), "return 0;")
    for found in VALUE.finditer(code):
        yield changed(line, *found.span(), "return 0;")
    for found in CHOICE.finditer(code):
        yield changed(line, *found.span(), " ? %s : %s" % (line[slice(*found.span(2))], line[slice(*found.span(1))]))


def conditions(line, code):
    for found in CONDITION.finditer(code):
        opening = found.end() - 1
        end = closing(code, opening)
        if end:
            yield changed(line, opening, end + 1, "(!%s)" % line[opening:end + 1])
    for found in RETURNED.finditer(code):
        yield changed(line, *found.span(1), "!(%s)" % line[slice(*found.span(1))])


def removal(line, code):
    if KEPT.match(code) or DECLARES.match(code):
        return
    found = CALL.match(code) or JUMP.match(code)
    if found and code.count("(") == code.count(")"):
        yield found.group(1) + ";"


def long_condition(lines, code):
    """Yield (row of the closing bracket, text up to that row) of a condition of several lines, negated; nothing for others."""
    found = CONDITION.search(code[0])
    if not found or closing(code[0], found.end() - 1) is not None:
        return
    opening, depth = found.end() - 1, 0
    for row, text in enumerate(code):
        for column in range(opening if not row else 0, len(text)):
            depth += {"(": 1, ")": -1}.get(text[column], 0)
            if not depth:
                made = list(lines[:row + 1])
                made[row] = changed(made[row], column, column + 1, "))")
                made[0] = changed(made[0], opening, opening + 1, "(!(")
                yield row, "\n".join(made)
                return


def long_removal(code):
    """Yield (last row, text) for the removal of a statement of several lines."""
    joined = " ".join([code[0].rstrip()] + [text.strip() for text in code[1:]])
    for text in removal(joined, joined):
        yield len(code) - 1, text


def statements(source, number):
    """Return [(last line, text)]: the mutants of a statement of several lines that begins in this one."""
    if number not in source.functions or (number > 1 and not source.ends(number - 1)):
        return []
    first, last = source.statement(number)
    last = min(last, source.functions[number][2])
    if first != number or last == number or any(DEAD.search(source.code[n - 1]) for n in range(first, last + 1)):
        return []
    lines, code = source.lines[first - 1:last], source.code[first - 1:last]
    return [(first + row, text) for kind in (long_condition(lines, code), long_removal(code)) for row, text in kind]


def every(source, number):
    """Return [(last line, text)]: all mutants that begin in a line, in a fixed order."""
    return [(number, text) for text in mutants(source, number)] + statements(source, number)


def mutants(source, number):
    """Return the texts by which mutants replace one line of a Source, in a fixed order."""
    line, code = source.lines[number - 1], source.code[number - 1]
    if not code.strip() or DEAD.search(code):
        return []
    continues = number > 1 and not source.ends(number - 1)
    made = []
    for kind in (operators, constants, conditions):
        made += kind(line, code)
    if number in source.functions and not continues:
        made += removal(line, code)
    seen = {line}
    return [text for text in made if not (text in seen or seen.add(text) or ROOMIER.search(text))]
