# SPDX-License-Identifier: GPL-2.0
"""Recipes: one TOML file per guest release under recipes/, and one for the toolbox."""
import json
import os
import tomllib

from .errors import LabError

HERE = os.path.dirname(os.path.realpath(__file__))
FOLDER = os.path.join(HERE, "recipes")
DEFAULT = "trixie"


def load(name):
    """Return the recipe's tables as nested dicts."""
    path = os.path.join(FOLDER, name + ".toml")
    try:
        with open(path, "rb") as f:
            return tomllib.load(f)
    except FileNotFoundError:
        raise LabError("no guest recipe '%s'; there are: %s" % (name, ", ".join(guests()))) from None
    except tomllib.TOMLDecodeError as e:
        raise LabError("%s: %s" % (path, e)) from None


def guests():
    """Return the names of the guest recipes."""
    names = sorted(n[:-5] for n in os.listdir(FOLDER) if n.endswith(".toml"))
    return [n for n in names if n != "toolbox"]


def text(*parts):
    """Return the canonical text of parts of a recipe, as input of an artefact's key."""
    return json.dumps(parts, sort_keys=True)
