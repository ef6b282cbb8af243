# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Numbered clauses of the specification.

``.. clause:: ORN-RNG-5 host`` followed by one sentence (or one numbered procedure) that binds
one side, and ``:clause:`ORN-RNG-5``` to refer to it. A clause states one thing, so
that one test can name it: exactly one of the words MUST, SHOULD and MAY occurs in it. The same
text is read without Sphinx by selftests/clauses.
"""

import re

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

SIDES = {"host": "host", "device": "device", "both": "host and device"}
CLAUSE_ID = re.compile(r"ORN-[A-Z]+-[1-9][0-9]*\Z")
KEYWORD = re.compile(r"\b(?:MUST|SHOULD|MAY)\b")


class Clause(SphinxDirective):
    """A clause: its id and side as term, its text as definition."""

    required_arguments = 2
    has_content = True

    def run(self):
        name, side = self.arguments
        if not CLAUSE_ID.match(name):
            raise self.error(f"'{name}' is no clause id; write ORN-<CHAPTER>-<number>")
        if side not in SIDES:
            raise self.error(f"{name}: side '{side}' is not one of {', '.join(SIDES)}")
        found = len(KEYWORD.findall("\n".join(self.content)))
        if found != 1:
            raise self.error(f"{name} has {found} of MUST, SHOULD, MAY; a clause has one")

        term = nodes.term("", "", nodes.strong("", name), nodes.Text(f" ({SIDES[side]})"))
        term["ids"].append(name.lower())
        self.state.document.note_explicit_target(term)
        self.env.get_domain("std").note_object("clause", name, name.lower(), location=term)
        body = nodes.definition()
        self.state.nested_parse(self.content, self.content_offset, body)
        return [nodes.definition_list("", nodes.definition_list_item("", term, body),
                                      classes=["clause"])]


def setup(app):
    """Register the directive and the role."""
    app.add_crossref_type("clause", "clause")
    app.add_directive_to_domain("std", "clause", Clause, override=True)
    return {"version": "1", "parallel_read_safe": True}
