# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Tables of the specification, taken from include/ornic.

``.. layout:: struct ornic_cqe`` renders offset, size, type, field and comment of every member;
``.. constants:: enum ornic_status`` or ``.. constants:: ORNIC_EQ_*`` renders values. Offsets are
computed here with the natural alignment of the fixed-width types and compared with the
header's own size and offset assertions. A structure, enumeration or constant of the headers that
no chapter shows is a warning, so nothing in the headers stays unspecified by oversight.
"""

import fnmatch
import re
from dataclasses import dataclass, field
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)

SCALARS = {"char": 1, "__u8": 1, "__le16": 2, "__be16": 2, "__le32": 4, "__be32": 4,
           "__le64": 8, "__be64": 8}
# Assertion helpers and include guards have no place in the text.
UNSHOWN = re.compile(r"ORNIC_ASSERT_\w+|ORNIC_\w+_H\Z")

DEFINE = re.compile(r"^#define\s+(ORNIC_\w+)[ \t]+((?:[^/\n\\]|/(?!\*)|\\\n)+)"
                    r"(?:/\*(.*?)\*/)?", re.M | re.S)
FUNCTION = re.compile(r"^#define\s+(ORNIC_\w+)\(([^)]*)\)\s+(.+)$", re.M)
ENUM = re.compile(r"^enum\s+(ornic_\w+)\s*\{(.*?)^\};", re.M | re.S)
ENUMERATOR = re.compile(r"^\t(ORNIC_\w+)\s*=\s*((?:[^,/()]|\([^)]*\))+),[ \t]*(?:/\*(.*?)\*/)?",
                        re.M | re.S)
STRUCT = re.compile(r"^struct\s+(ornic_\w+)\s*\{(.*?)^\};", re.M | re.S)
MEMBER = re.compile(r"((?:struct\s+)?\w+)\s+(\w+)(?:\[(\w+)\])?;[ \t]*(?:/\*(.*?)\*/)?", re.S)
UNION = re.compile(r"union\s*\{(.*?)\};", re.S)
SIZE = re.compile(r"^ORNIC_ASSERT_SIZE\(struct (\w+), (\w+)\)", re.M)
OFFSET = re.compile(r"^ORNIC_ASSERT_OFFSET\(struct (\w+), (\w+), (\w+)\)", re.M)


@dataclass
class Member:
    """One row of a layout table."""

    offset: int
    size: int
    type: str
    name: str
    comment: str


@dataclass
class Constant:
    """One row of a table of constants."""

    name: str
    value: int
    source: str
    comment: str


@dataclass
class Headers:
    """Everything that include/ornic says."""

    files: list = field(default_factory=list)
    functions: dict = field(default_factory=dict)
    sources: dict = field(default_factory=dict)
    constants: dict = field(default_factory=dict)
    enums: dict = field(default_factory=dict)
    structs: dict = field(default_factory=dict)
    sizes: dict = field(default_factory=dict)
    aligns: dict = field(default_factory=dict)


def tidy(comment):
    """A C comment as one line of text."""
    return re.sub(r"\s*\n\s*\*?\s*|\s+", " ", comment or "").strip()


def evaluate(headers, source):
    """The value of a constant expression of the headers."""
    text = source.replace("\\\n", " ")
    for name, (params, body) in headers.functions.items():
        def expand(match, params=params, body=body):
            result = body
            for param, arg in zip(params, match.group(1).split(",")):
                result = re.sub(rf"\b{param}\b", arg.strip(), result)
            return f"({result})"
        text = re.sub(rf"\b{name}\(([^)]*)\)", expand, text)
    text = re.sub(r"\bORNIC_\w+\b", lambda m: str(evaluate(headers, headers.sources[m.group(0)])),
                  text)
    text = re.sub(r"\b(0x[0-9a-fA-F]+|[0-9]+)[uUlL]+\b", r"\1", text)
    if not re.fullmatch(r"[0-9a-fA-Fx()+\-*|&<>\s]+", text):
        raise ExtensionError(f"layout: cannot evaluate '{source.strip()}'")
    return eval(text, {"__builtins__": {}})  # pylint: disable=eval-used


def collect_sources(headers, text):
    """First pass over a header: what each name is defined as."""
    for name, params, body in FUNCTION.findall(text):
        if not UNSHOWN.match(name):
            headers.functions[name] = ([p.strip() for p in params.split(",")], body)
    for name, body, _ in DEFINE.findall(text):
        headers.sources[name] = body.strip()
    for _, body in ENUM.findall(text):
        for name, value, _ in ENUMERATOR.findall(body):
            headers.sources[name] = value.strip()


def collect_values(headers, text):
    """Second pass: constants, enumerations, structures, assertions."""
    for name, body, comment in DEFINE.findall(text):
        if not UNSHOWN.match(name):
            headers.constants[name] = Constant(name, evaluate(headers, body), body, tidy(comment))
    for name, body in ENUM.findall(text):
        headers.enums[name] = [Constant(item, evaluate(headers, value), value, tidy(comment))
                               for item, value, comment in ENUMERATOR.findall(body)]
    for name, body in STRUCT.findall(text):
        place(headers, name, body)
    for name, size in SIZE.findall(text):
        if headers.sizes[name] != int(size, 0):
            raise ExtensionError(f"layout: {name} has {headers.sizes[name]} bytes, not {size}")
    for name, member, offset in OFFSET.findall(text):
        found = next(m.offset for m in headers.structs[name] if m.name == member)
        if found != int(offset, 0):
            raise ExtensionError(f"layout: {name}.{member} is at {found:#x}, not {offset}")


def implied(name):
    """What the name of an uncommented member says."""
    reserved = re.fullmatch(r"(mbz|res)[0-9]*", name)
    return reserved.group(1) if reserved else ""


def place(headers, name, body):
    """Compute the offsets of one structure."""
    rows, offset, align = [], 0, 1
    position = 0
    while position < len(body):
        union = UNION.match(body, position)
        member = MEMBER.match(body, position)
        if not union and not member:
            position += 1
            continue
        group = MEMBER.findall(union.group(1)) if union else [member.groups()]
        widest = 0
        for kind, item, count, comment in group:
            kind = tidy(kind)
            if kind.startswith("struct "):
                unit, natural = headers.sizes[kind[7:]], headers.aligns[kind[7:]]
            else:
                unit = natural = SCALARS[kind]
            size = unit * (evaluate(headers, count) if count else 1)
            offset = (offset + natural - 1) // natural * natural
            align, widest = max(align, natural), max(widest, size)
            shown = f"{kind}[{size // unit}]" if count else kind
            rows.append(Member(offset, size, shown, item, tidy(comment) or implied(item)))
        offset += widest
        position = (union or member).end()
    headers.structs[name] = rows
    headers.sizes[name] = (offset + align - 1) // align * align
    headers.aligns[name] = align


def parse(folder):
    """Read all headers, those that others include first."""
    headers = Headers(files=sorted(Path(folder).glob("*.h")))
    texts = {path.name: path.read_text(encoding="utf-8") for path in headers.files}
    ordered = []

    def visit(name):
        for needed in re.findall(r'^#include "(\w+\.h)"', texts[name], re.M):
            visit(needed)
        if name not in ordered:
            ordered.append(name)

    for name in texts:
        visit(name)
    for name in ordered:
        collect_sources(headers, texts[name])
    for name in ordered:
        collect_values(headers, texts[name])
    return headers


def clause_text(text):
    """Text in which clause ids are links."""
    result = nodes.paragraph()
    for piece in re.split(r"(ORN-[A-Z]+-[0-9]+)", text):
        if re.fullmatch(r"ORN-[A-Z]+-[0-9]+", piece):
            result += reference("clause", piece)
        elif piece:
            result += nodes.Text(piece)
    return result


def reference(kind, target, text=None):
    """A reference that the standard domain resolves."""
    node = addnodes.pending_xref("", nodes.literal("", text or target), refdomain="std",
                                 reftype=kind, reftarget=target, refexplicit=False)
    return node


def table(titles, widths, rows):
    """A table node of prepared cells."""
    result = nodes.table(classes=["layout"])
    group = nodes.tgroup(cols=len(titles))
    result += group
    for width in widths:
        group += nodes.colspec(colwidth=width)
    head, body = nodes.thead(), nodes.tbody()
    head += table_row([nodes.paragraph("", title) for title in titles])
    for cells in rows:
        body += table_row(cells)
    group += head
    group += body
    return result


def table_row(cells):
    """One row of a table."""
    row = nodes.row()
    for cell in cells:
        row += nodes.entry("", cell)
    return row


def literal(text):
    """A cell of literal text."""
    return nodes.paragraph("", "", nodes.literal("", text))


class HeaderDirective(SphinxDirective):
    """What both directives share: the parsed headers, and who is shown where."""

    required_arguments = 1
    final_argument_whitespace = True

    def headers(self):
        """The headers, parsed once per build."""
        parsed = self.config.ornic_headers_parsed
        for path in parsed.files:
            self.env.note_dependency(str(path))
        return parsed

    def note(self, names):
        """Remember what this document shows."""
        shown = self.env.__dict__.setdefault("ornic_shown", {})
        shown.setdefault(self.env.docname, set()).update(names)


class Layout(HeaderDirective):
    """The table of one structure."""

    def run(self):
        name = self.arguments[0].removeprefix("struct ")
        headers = self.headers()
        if name not in headers.structs:
            raise self.error(f"no structure {name} in the headers")
        self.note([name])
        rows = [[literal(f"0x{m.offset:03x}"), nodes.paragraph("", str(m.size)), self.kind(m),
                 literal(m.name), clause_text(m.comment)] for m in headers.structs[name]]
        size = headers.sizes[name]
        caption = nodes.paragraph("", "", nodes.strong("", f"struct {name}"),
                                  nodes.Text(f", {size} bytes"))
        caption["ids"].append(f"layout-{name}")
        self.state.document.note_explicit_target(caption)
        self.env.get_domain("std").note_object("layout", name, f"layout-{name}", location=caption)
        return [caption, table(["Offset", "Size", "Type", "Field", "Meaning"],
                               [8, 6, 18, 20, 48], rows)]

    @staticmethod
    def kind(member):
        """The type of a member, a link if it is a structure."""
        if not member.type.startswith("struct "):
            return literal(member.type)
        return nodes.paragraph("", "", reference("layout", member.type[7:], member.type))


class Constants(HeaderDirective):
    """The table of an enumeration, or of constants chosen by name patterns."""

    option_spec = {"head": directives.unchanged}

    def run(self):
        headers = self.headers()
        chosen = self.enum(headers) or self.named(headers)
        rows = [[literal(self.value(c)), literal(c.name), clause_text(c.comment)] for c in chosen]
        return [table([self.options.get("head", "Value"), "Name", "Meaning"], [14, 34, 52], rows)]

    def enum(self, headers):
        """The constants of ``enum x``, none for other arguments."""
        if not self.arguments[0].startswith("enum "):
            return []
        name = self.arguments[0].removeprefix("enum ")
        if name not in headers.enums:
            raise self.error(f"no enumeration {name} in the headers")
        self.note([name])
        return headers.enums[name]

    def named(self, headers):
        """The constants that one of the patterns selects, in the order of the headers."""
        patterns = self.arguments[0].split()
        for pattern in patterns:
            if not fnmatch.filter(headers.constants, pattern):
                raise self.error(f"no constant {pattern} in the headers")
        chosen = [c for name, c in headers.constants.items()
                  if any(fnmatch.fnmatchcase(name, p) for p in patterns)]
        self.note(c.name for c in chosen)
        return chosen

    @staticmethod
    def value(constant):
        """The value as the header writes it: bit, hexadecimal or decimal."""
        bit = re.fullmatch(r"\(1u?l*\s*<<\s*(\d+)\)", constant.source.strip())
        if bit:
            return f"bit {bit.group(1)}"
        if re.fullmatch(r"[0-9]+", constant.source.strip()):
            return str(constant.value)
        return f"0x{constant.value:x}"


def load(app, config):
    """Parse the headers before any document is read."""
    config.ornic_headers_parsed = parse(config.ornic_headers)


def forget(app, env, docname):
    """A document is read again or gone."""
    env.__dict__.setdefault("ornic_shown", {}).pop(docname, None)


def complete(app, env):
    """Warn about everything in the headers that no document shows."""
    shown = set().union(*env.__dict__.get("ornic_shown", {}).values())
    headers = app.config.ornic_headers_parsed
    for name in [*headers.structs, *headers.enums, *headers.constants]:
        if name not in shown:
            logger.warning("%s is in the headers and in no chapter; show it with 'layout' or "
                           "'constants'", name)


def setup(app):
    """Register the directives."""
    app.add_config_value("ornic_headers", None, "env", [str])
    app.add_config_value("ornic_headers_parsed", None, "")
    app.add_crossref_type("layout", "layout")
    app.add_directive_to_domain("std", "layout", Layout, override=True)
    app.add_directive("constants", Constants)
    app.connect("config-inited", load)
    app.connect("env-purge-doc", forget)
    app.connect("env-check-consistency", complete)
    return {"version": "1", "parallel_read_safe": False}
