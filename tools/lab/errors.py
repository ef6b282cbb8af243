# SPDX-License-Identifier: GPL-2.0
"""The lab's only exception: a sentence for the user that says what is wrong and what to do; and the text of other errors."""


class LabError(Exception):
    """Printed by the command as a single line, without a traceback."""


def reason(error):
    """Return the text of an OSError, after the name of its file if it has one."""
    text = error.strerror or str(error) or type(error).__name__
    return "%s: %s" % (error.filename, text) if error.filename else text
