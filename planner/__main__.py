"""Command line: `headroom COMMAND`, or `python -m planner COMMAND` in a checkout.

Exit code 0 on success, 1 where `check` finds another verdict; 2 and one line on stderr on bad input.
"""

from __future__ import annotations

import os
import sys

from planner.commands import parser
from planner.errors import PlannerError
from planner.scenario import message


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code.

    Parameters
    ----------
    argv : list of str, optional
        Arguments without the program name; None: those of the process.

    Returns
    -------
    int
        0 on success, 1 where `check` finds another verdict, 2 on bad input.
    """
    try:
        options = parser().parse_args(argv)
        code = options.run(options) or 0
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a full disk can still be told
    except PlannerError as error:
        print(f"error: {' '.join(message(error).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        _discard_output()  # the reader has gone (`| head`): nothing is left to say
        return 0
    except OSError as error:
        _discard_output()
        what = error.filename or "the output could not be written"
        print(f"error: {what}: {error.strerror or error}", file=sys.stderr)
        return 2
    return code


def _discard_output() -> None:
    # Python must not try to flush again when it ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
