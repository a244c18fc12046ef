"""The commands of the command line.

In: the arguments. Out: what is printed or written, and the exit code of `check`.
"""

from planner.commands.parser import parser

__all__ = ["parser"]
