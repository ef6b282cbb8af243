# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Sphinx configuration of the ornic documents."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

project = "ornic"
author = "the ornic authors"
copyright = author  # pylint: disable=redefined-builtin
version = "1.0"
release = version

extensions = ["clause", "layout"]
ornic_headers = str(HERE.parent / "include" / "ornic")

root_doc = "index"
exclude_patterns = ["_build"]
nitpicky = True
highlight_language = "none"

html_theme = "alabaster"
html_theme_options = {"page_width": "1100px", "sidebar_width": "240px"}
html_show_sourcelink = False
