"""The command ``roast-record``.

Exit codes: 0 well; 1 the run that was recorded failed; 2 the call was wrong. ``run`` gives
the exit code of the program that it ran.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from roast_recorder import __version__
from roast_recorder.commands import WRONG_CALL, CallError, attach, demo, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``roast-record`` with some arguments and give its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except CallError as error:
        print(f"roast-record: {error}", file=sys.stderr)
        return WRONG_CALL
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="roast-record", description="Record what a Dask cluster does."
    )
    parser.add_argument("--version", action="version", version=f"roast-trace {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (run, attach, demo):
        command.add_to(commands)
    return parser
