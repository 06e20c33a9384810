"""Rows of the table ``_seceded_samples``: samples of prefixes of which tasks had seceded.

There is one row per process, prefix and profiling cycle during which a task of the prefix had
left the threads of this process, with the number of samples, and of those in which work was
done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.algorithms.busy_time import during
from roast_analyze.algorithms.work_kinds import load_kinds
from roast_analyze.computed.busy_time import sampled, seceded_times
from roast_analyze.open.user_kinds import user_file

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

_RUNS: Final = "SELECT trace_id, start_t FROM _trace_range ORDER BY trace_id"

_COLUMNS: Final = pl.Schema(
    {
        "process": pl.Int64(),
        "prefix": pl.String(),
        "start_t": pl.Float64(),
        "stop_t": pl.Float64(),
        "working_samples": pl.Float64(),
        "samples": pl.Float64(),
        "trace_id": pl.String(),
    }
)


def query(trace: Session) -> pl.DataFrame:
    """Return the samples of all traces."""
    kinds = load_kinds(user_file())
    working = [kind for kind, category in kinds.categories.items() if category == "working"]
    found = [pl.DataFrame(schema=_COLUMNS)]
    for trace_id, start_t in trace.rows(_RUNS):
        seceded = seceded_times(trace, trace_id, start_t)
        if seceded.is_empty():
            continue
        prefixes = seceded["prefix"].unique().to_list()
        cycles, samples = sampled(trace, trace_id, start_t, kinds, prefixes)
        number = pl.col("samples")
        counts = samples.group_by("slice").agg(
            number.filter(pl.col("kind").is_in(working)).sum().alias("working_samples"),
            number.sum(),
        )
        found.append(
            cycles.filter(during(cycles, seceded))
            .join(counts, on="slice", maintain_order="left")
            .with_columns(
                start_t=start_t + pl.col("start"),
                stop_t=start_t + pl.col("stop"),
                trace_id=pl.lit(trace_id),
            )
            .select(pl.col(name).cast(kind) for name, kind in _COLUMNS.items())
        )
    return pl.concat(found)
