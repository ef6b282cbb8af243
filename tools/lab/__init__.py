# SPDX-License-Identifier: GPL-2.0
"""The ornic lab as a library: `from lab import Lab` with tools/ on the path; see README.md."""
from .channel import Process
from .errors import LabError
from .topology import Config, Lab
from .vm import VM, CommandFailed, Result

__all__ = ["CommandFailed", "Config", "Lab", "LabError", "Process", "Result", "VM"]
