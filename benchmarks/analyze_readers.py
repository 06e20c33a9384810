"""Readers measured by :mod:`analyze_speed`: ``analyze_readers.py NAME TRACE`` runs one.

Each reads a whole trace. It imports only what it uses, because the start of the process is
measured, too.
"""

from __future__ import annotations

import argparse
import inspect
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

AGGREGATE = "SELECT prefix, count(*), sum(compute_seconds) FROM task_runs GROUP BY prefix"


def _all_columns(columns: dict[str, str]) -> str:
    """Return a table function of DuckDB for all columns of a trace."""
    types = ", ".join(f"'{name}': '{type_}'" for name, type_ in columns.items())
    return f"read_json($trace, format = 'newline_delimited', columns = {{{types}}})"


def duckdb_scan(trace: Path) -> None:
    """Count rows, values of every column, and bytes of every text, by kind."""
    import duckdb

    from roast_schemas.describe import duckdb_columns

    columns = duckdb_columns()
    # Select every column, so that every column is parsed.
    asked = ", ".join(
        f'sum(strlen("{name}"))' if type_ == "VARCHAR" else f'count("{name}")'
        for name, type_ in columns.items()
        if name != "kind"
    )
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(
            f"SELECT kind, count(*), {asked} FROM {_all_columns(columns)} GROUP BY kind",
            {"trace": str(trace)},
        ).fetchall()


def duckdb_table(trace: Path) -> None:
    """Store all rows in one table of a database file."""
    import duckdb

    from roast_schemas.describe import duckdb_columns

    with TemporaryDirectory() as folder, duckdb.connect(f"{folder}/trace.duckdb") as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(
            f"CREATE TABLE records AS FROM {_all_columns(duckdb_columns())}",
            {"trace": str(trace)},
        )


def orjson_loop(trace: Path) -> None:
    """Parse every line, and count lines by kind."""
    import orjson

    kinds: Counter[str] = Counter()
    with opened(trace) as lines:
        for line in lines:
            kinds[orjson.loads(line)["kind"]] += 1


def polars_scan(trace: Path) -> None:
    """Count rows and values of every column by kind, as the DuckDB scan does."""
    import duckdb
    import polars as pl

    from roast_schemas.describe import duckdb_columns

    # Polars has no map type: read maps as text.
    nulls = ", ".join(
        f'NULL::{"VARCHAR" if type_.startswith("MAP") else type_} AS "{name}"'
        for name, type_ in duckdb_columns().items()
    )
    schema = duckdb.sql(f"SELECT {nulls}").pl().schema
    counts = pl.all().exclude("kind").count()
    pl.scan_ndjson(trace, schema=schema).group_by("kind").agg(pl.len(), counts).collect(
        engine="streaming"
    )


def hta_totals(events: Path) -> None:
    """Parse Chrome trace events with HolisticTraceAnalysis, and compute totals by name.

    It runs in another Python environment, which has that package but not roast.
    """
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_files={0: str(events)})
    analysis.t.get_trace(0).groupby("name")["dur"].agg(["count", "sum"])


def roast_aggregate(trace: Path, memory_limit: str | None = None) -> None:
    """Open a trace and query totals of ``task_runs``; print the seconds of the query."""
    from roast_analyze import Trace

    limit: dict[str, Any] = {}
    if memory_limit and "memory_limit" in inspect.signature(Trace).parameters:
        limit["memory_limit"] = memory_limit
    with Trace(trace, **limit) as opened:
        start = time.perf_counter()
        opened.sql(AGGREGATE).fetchall()
        print(time.perf_counter() - start)


def opened(trace: Path) -> Any:
    """Open a plain or zstd file for reading lines."""
    if trace.suffix == ".zst":
        import io

        import zstandard

        return io.BufferedReader(zstandard.open(trace, "rb"))  # its reader has no lines
    return trace.open("rb")


READERS = {
    reader.__name__: reader
    for reader in (duckdb_scan, duckdb_table, orjson_loop, polars_scan, hta_totals)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("reader", choices=[*READERS, roast_aggregate.__name__])
    parser.add_argument("trace", type=Path)
    parser.add_argument("--memory-limit")
    options = parser.parse_args()
    if options.reader in READERS:
        READERS[options.reader](options.trace)
    else:
        roast_aggregate(options.trace, options.memory_limit)


if __name__ == "__main__":
    main()
