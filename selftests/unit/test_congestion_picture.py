#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""selftests/congestion: the picture is drawn from a run, and shows the results that the documentation describes."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
CURRENT = os.path.join(HERE, "..", "..", "Documentation", "congestion.svg")
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import tap  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


class Picture(unittest.TestCase):
    def test_drawn(self):
        with tempfile.TemporaryDirectory() as where:
            path = os.path.join(where, "picture.svg")
            subprocess.run([os.path.join(HERE, "..", "congestion"), "--output", path], check=True)
            root = xml.etree.ElementTree.parse(path).getroot()
            with open(path) as drawn, open(CURRENT) as current:
                self.assertEqual(current.read(), drawn.read(), "Documentation/congestion.svg is old: selftests/congestion draws it")
        words = [e.text for e in root.iter(SVG + "text")]
        lost = [int(m.group(1)) for m in (re.match(r"(\d+) frames lost", w) for w in words) if m]
        self.assertEqual(len(lost), 2)
        self.assertGreater(lost[0], 0, "without congestion control nothing was lost")
        self.assertEqual(lost[1], 0)
        self.assertEqual(len(list(root.iter(SVG + "polyline"))), 6)


if __name__ == "__main__":
    tap.main()
