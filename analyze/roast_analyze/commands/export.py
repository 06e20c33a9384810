"""Write a trace, or a part of it, for other programs.

Several at once are fine. FILE is replaced when the new one is whole; `-` is stdout for the
formats that are text. The times of --start and --stop count from the start of the recording,
and what overlaps the stretch between them belongs to it.

For example:

    roast-analyze export trace.jsonl --perfetto tasks.json
    roast-analyze export trace.jsonl --folded - --prefix DijetProcessor | flamegraph.pl > f.svg
    roast-analyze export trace.jsonl --parquet tables --duckdb trace.duckdb
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from roast_analyze.commands.trace_args import add_trace, add_views, named_traces, open_trace
from roast_analyze.errors import TraceError

if TYPE_CHECKING:
    import argparse

    from roast_analyze.export.scope import Scope
    from roast_analyze.open.session import Session

#: Formats, what is named with them, and what they are for.
FORMATS: Final = {
    "perfetto": ("FILE", "tasks, transfers and counters, for ui.perfetto.dev (JSON)"),
    "speedscope": ("FILE", "profiles in the order of time, for speedscope.app (JSON)"),
    "folded": ("FILE", "profiles as folded stacks, for flamegraph.pl and inferno (text)"),
    "parquet": ("DIR", "every view as a Parquet file"),
    "duckdb": ("FILE", "every view as a table of a DuckDB database"),
}
_TEXT: Final = ("perfetto", "speedscope", "folded")
_OF_PROFILES: Final = ("speedscope", "folded")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    add_trace(parser, several=True)
    for name, (metavar, meaning) in FORMATS.items():
        parser.add_argument(f"--{name}", metavar=metavar, type=Path, help=meaning)
    parser.add_argument("--worker", help="one worker only: its address or name, or scheduler")
    parser.add_argument("--prefix", help="tasks with this key prefix only")
    parser.add_argument("--start", metavar="SECONDS", type=float, help="from this time on")
    parser.add_argument("--stop", metavar="SECONDS", type=float, help="before this time")
    add_views(parser)


def run(options: argparse.Namespace) -> int:
    """Write what was chosen."""
    targets = {name: getattr(options, name) for name in FORMATS if getattr(options, name)}
    _check(named_traces(options), targets)
    with open_trace(options, views=options.views) as trace:
        from roast_analyze.export.scope import part_of

        scope = part_of(
            trace,
            worker=options.worker,
            prefix=options.prefix,
            start=options.start,
            stop=options.stop,
        )
        if any(name in targets for name in _OF_PROFILES):
            from roast_analyze.export.profiles import refuse_if_none

            refuse_if_none(trace)
        for name, target in targets.items():
            _write(name, trace, scope, target)
    return 0


def _check(traces: list[Path], targets: dict[str, Path]) -> None:
    """Refuse what cannot be written, before minutes of reading."""
    from roast_analyze.export.files import STDOUT, check_place
    from roast_analyze.output_paths import refuse_to_overwrite

    if not targets:
        choices = ", ".join(f"--{name} {metavar}" for name, (metavar, _) in FORMATS.items())
        raise TraceError(f"say what to write: {choices}")
    for name, target in targets.items():
        check_place(target, is_folder=name not in _TEXT and FORMATS[name][0] == "DIR")
        if target in STDOUT and name not in _TEXT:
            raise TraceError(f"--{name} is not for stdout; name a file")
        if target not in STDOUT:
            refuse_to_overwrite(traces, target)
    meant = [Path("-") if target in STDOUT else target.resolve() for target in targets.values()]
    if len(set(meant)) < len(meant):
        raise TraceError("two formats cannot go to one file; name another one")


def _write(name: str, trace: Session, scope: Scope, target: Path) -> None:
    from roast_analyze.export import files, folded, perfetto, speedscope, tables

    if name == "parquet":
        tables.write_parquet(trace, scope, target)
    elif name == "duckdb":
        tables.write_duckdb(trace, scope, target)
    else:
        writers = {
            "perfetto": perfetto.write,
            "speedscope": speedscope.write,
            "folded": folded.write,
        }
        with files.text(target) as file:
            writers[name](trace, scope, file)
