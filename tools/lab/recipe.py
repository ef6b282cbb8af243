# SPDX-License-Identifier: GPL-2.0
"""Recipes: one TOML file per guest release under guests/, and one for the toolbox."""
import json
import os
import tomllib

from .errors import LabError

HERE = os.path.dirname(os.path.realpath(__file__))
FOLDER = os.path.join(HERE, "guests")
DEFAULT = "trixie"


def load(name):
    """The recipe's tables as nested dicts."""
    path = os.path.join(FOLDER, name + ".toml")
    try:
        with open(path, "rb") as f:
            return tomllib.load(f)
    except FileNotFoundError:
        raise LabError("no guest recipe '%s'; there are: %s" % (name, ", ".join(guests()))) from None
    except tomllib.TOMLDecodeError as e:
        raise LabError("%s: %s" % (path, e)) from None


def guests():
    """Names of the guest recipes."""
    names = sorted(n[:-5] for n in os.listdir(FOLDER) if n.endswith(".toml"))
    return [n for n in names if n != "toolbox"]


def text(*parts):
    """Canonical text of the parts of a recipe: what an artefact's key is made of."""
    return json.dumps(parts, sort_keys=True)
