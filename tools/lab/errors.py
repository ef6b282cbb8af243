# SPDX-License-Identifier: GPL-2.0
"""The one exception of the lab: a sentence for a person, saying what is wrong and what to do."""


class LabError(Exception):
    """Printed by the command as a single line, without a traceback."""
