"""Write traces for other programs.

Several formats can be written at once. An existing FILE is replaced when the new one is
complete. FILE can be - for stdout if the format is text.

For example:

    roast-analyze export trace.jsonl --perfetto tasks.json
    roast-analyze export trace.jsonl --folded - --prefix DijetProcessor | flamegraph.pl > f.svg
    roast-analyze export monday.jsonl tuesday.jsonl --parquet tables --duckdb both.duckdb
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from roast_analyze.commands.trace_args import (
    add_time_range,
    add_traces,
    add_views,
    open_trace,
)
from roast_analyze.errors import TraceError
from roast_analyze.output_paths import STDOUT, check_place, refuse_to_overwrite, text

#: Metavar and help text of each format.
FORMATS: Final = {
    "perfetto": ("FILE", "tasks, transfers and counters, for ui.perfetto.dev (JSON)"),
    "speedscope": ("FILE", "profiles in time order, for speedscope.app (JSON)"),
    "folded": ("FILE", "profiles as folded stacks, for flamegraph.pl and inferno (text)"),
    "parquet": ("DIR", "every view as a Parquet file"),
    "duckdb": ("FILE", "every view as a table of a DuckDB database"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_traces(parser)
    for name, (metavar, meaning) in FORMATS.items():
        parser.add_argument(f"--{name}", metavar=metavar, type=Path, help=meaning)
    parser.add_argument("--worker", help="only this worker: its address or name, or scheduler")
    parser.add_argument("--prefix", help="only tasks with this key prefix")
    add_time_range(parser)
    add_views(parser)


def run(options: argparse.Namespace) -> None:
    """Write the chosen formats."""
    targets = {name: getattr(options, name) for name in FORMATS if getattr(options, name)}
    # Checked before the traces are read, which can take minutes.
    if not targets:
        choices = ", ".join(f"--{name} {metavar}" for name, (metavar, _) in FORMATS.items())
        raise TraceError(f"no format given: choose from {choices}")
    for name, target in targets.items():
        check_place(target, is_folder=FORMATS[name][0] == "DIR")
        # A database and a folder cannot be streams.
        if target not in STDOUT:
            refuse_to_overwrite(options.traces, target)
        elif name in ("parquet", "duckdb"):
            raise TraceError(f"--{name} cannot be written to stdout: name a file")
    # Two names can be one file, through a link or as - and /dev/stdout.
    places = {
        Path("-") if target in STDOUT else target.resolve() for target in targets.values()
    }
    if len(places) < len(targets):
        raise TraceError("two formats have the same file: name another one")
    with open_trace(options.traces, options, views=options.views) as trace:
        from roast_analyze.export import folded, perfetto, speedscope, tables
        from roast_analyze.export.scope import check_profiles, find_scope

        scope = find_scope(trace, worker=options.worker, prefix=options.prefix)
        if "speedscope" in targets or "folded" in targets:
            check_profiles(trace, scope)
        text_writers = {"perfetto": perfetto, "speedscope": speedscope, "folded": folded}
        for name, target in targets.items():
            if name == "parquet":
                tables.write_parquet(trace, scope, target)
            elif name == "duckdb":
                tables.write_duckdb(trace, scope, target)
            else:
                with text(target) as file:
                    text_writers[name].write(trace, scope, file)
