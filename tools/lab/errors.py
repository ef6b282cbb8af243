# SPDX-License-Identifier: GPL-2.0
"""The lab's only exception: a sentence for the user that says what is wrong and what to do."""


class LabError(Exception):
    """Printed by the command as a single line, without a traceback."""
