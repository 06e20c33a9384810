import duckdb
import numpy as np
import polars as pl
import pytest

from roast_analyze.report.history.data import FILES, HOSTS, PROGRAMS, USERS, History, build

#: 2026-01-01, UTC.
START = 1767225600.0
HOUR = 3600.0


@pytest.fixture(scope="session")
def planted():
    """Build the history of programs p0, p1, …; all durations have a noise of 8 %.

    From run 61 of 120 on, p0 takes 15 % longer and has another commit. The file f0.root takes
    50 % longer in every run, the host n0 30 %. The other programs have new commits, too.
    """

    def planted(seed: int, programs: int = 11, runs: int = 120, **columns) -> History:
        random = np.random.default_rng(seed)

        def noise(*shape):
            return np.exp(random.normal(0.0, 0.08, shape))

        wall_seconds = noise(programs, runs) * 600.0
        wall_seconds[0, runs // 2 :] *= 1.15
        new_commit = random.integers(1, runs, programs)
        new_commit[0] = runs // 2
        program, number = (axis.ravel() for axis in np.indices((programs, runs)))
        rows = pl.DataFrame(
            {
                "trace_id": [f"{p}-{n}" for p, n in zip(program, number, strict=True)],
                "program": [f"p{p}.py" for p in program],
                "label": pl.Series([None] * program.size, dtype=pl.String),
                "start_t": START + HOUR * number + program,
                "owner": [f"user{p % 3}" for p in program],
                "account": pl.Series([None] * program.size, dtype=pl.String),
                "git_commit": np.where(number < new_commit[program], "a" * 40, "b" * 40),
                "hosts": [["n0", "n1", "n2"]] * program.size,
                "wall_seconds": wall_seconds.ravel(),
                "core_hours": wall_seconds.ravel() * 8 / HOUR,
                "compute_hours": wall_seconds.ravel() * 6 / HOUR,
                "kept_hours": wall_seconds.ravel() * (5.6 + 0.2 * noise(program.size)) / HOUR,
                "utilization": np.full(program.size, 0.75),
                "events": np.full(program.size, 10**6),
                "events_per_core_second": 1e6 / 8 / wall_seconds.ravel(),
                "failures": random.integers(0, 3, program.size),
                **columns,
            }
        )
        members = {"file_history": ("filename", "f{}.root", 20, 1.5),
                   "host_history": ("host", "n{}", 8, 1.3)}  # fmt: skip
        connection = duckdb.connect()
        for view, (column, text, count, factor) in members.items():
            relative_duration = noise(rows.height, count)
            relative_duration[:, 0] *= factor
            each = pl.DataFrame({
                column: [text.format(i) for i in range(count)] * rows.height,
                "dataset": ["DY"] * (count * rows.height),
                "start_t": rows["start_t"].to_numpy().repeat(count),
                "trace_id": rows["trace_id"].to_numpy().repeat(count),
                "compute_seconds": relative_duration.ravel() * 60,
                "relative_duration": relative_duration.ravel(),
            })  # fmt: skip
            connection.register(view, each.to_arrow())
        connection.register("runs", rows.to_arrow())
        queries = (FILES, HOSTS, PROGRAMS, USERS)
        return build("store", rows, *(connection.sql(query).pl() for query in queries))

    return planted
