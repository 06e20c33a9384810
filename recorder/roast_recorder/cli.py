# PYTHON_ARGCOMPLETE_OK
"""The command ``roast-record``.

- 0: success
- 1: the recording did not end cleanly, or the demo failed
- 2: the call is invalid
- 130: ended by Ctrl-C

``run`` returns the exit code of the program. Errors are one line on stderr.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from roast_recorder import __version__
from roast_recorder.commands import INVALID_CALL, CallError, attach, demo, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``roast-record`` and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="roast-record", description="Record what happens on a Dask cluster."
    )
    parser.add_argument("--version", action="version", version=f"roast-trace {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (run, attach, demo):
        command.add_to(commands)
    if "_ARGCOMPLETE" in os.environ:  # a shell completes the command line
        import argcomplete

        argcomplete.autocomplete(parser)
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except CallError as error:
        print(f"roast-record: {error}", file=sys.stderr)
        return INVALID_CALL
    except KeyboardInterrupt:
        return 130
