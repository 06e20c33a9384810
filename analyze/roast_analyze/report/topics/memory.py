"""Memory of the workers over time, and data transfers between workers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.figures import samples
from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.plots import Plot
from roast_analyze.report.section import Section
from roast_analyze.report.topics import transfers as movement

if TYPE_CHECKING:
    from roast_analyze.report.context import Context
    from roast_analyze.report.topics.transfers import Transfers

_PAIRS: Final = columns("source destination transfers bytes seconds")
_SAMPLE_HINT: Final = (
    'roast_recorder.record(client, "trace.jsonl", sample_interval_seconds=0.2)'
)


def section(transfers: Transfers, context: Context, prefixes: pl.DataFrame) -> Section:
    """Build the section; ``prefixes`` contains prefix and transfer_seconds."""
    section = Section("memory", "Memory and data transfers", "Memory")
    plots = []
    if context.cluster_samples.is_empty():
        interval = q.seconds(context.recording.sample_interval_seconds or 1.0)
        reason = (
            "No worker was sampled: there was none, or the recording was shorter than the "
            f"sample interval ({interval}). To sample more often"
        )
        if not transfers.count:
            return replace(section, empty=f"{reason}:", hint=_SAMPLE_HINT)
        text = f"{reason}."
    else:
        cluster, workers = context.cluster_samples, context.worker_samples
        peak, limit, spilled = (
            q.as_float(cluster[name].max())
            for name in ("memory_bytes", "memory_limit_bytes", "spilled_bytes")
        )
        text = f"Peak memory of all workers was {q.byte_size(peak)}"
        text += f" of {q.byte_size(limit)}." if limit else "; no limit is set."
        shares = workers.filter(pl.col("memory_limit_bytes") > 0).select(
            pl.col("memory_bytes") / pl.col("memory_limit_bytes")
        )
        if (share := q.as_float(shares.to_series().max())) is not None:
            text += f" The fullest worker reached {q.share(share)} of its limit."
        spill = f"At most {q.byte_size(spilled)} were" if spilled else "Nothing was"
        text += f" {spill} spilled to disk."
        if limit and not samples.limit_fits(cluster):
            text += " The limit is far above the curves and is not drawn."
        plots.append(
            Plot(
                samples.memory(cluster, workers, context.worker_names, context.axis),
                name="memory",
                title="Memory over time",
                description="Memory over time: of the cluster above, stacked as stored "
                "results, other memory and spilled results; of each worker below.",
                query="SELECT * FROM cluster_samples; SELECT * FROM worker_samples",
                command=context.view_command("worker_samples"),
            )
        )
    if transfers.count:
        rows, total = transfers.workers.height, context.workers.height
        note = (
            f"Each of the {q.count(rows)} rows stands for several of the {q.count(total)} "
            "workers, in order."
        )
        plots.append(
            Plot(
                movement.figure(transfers),
                name="movement",
                title="Transfers between workers",
                description=f"A heatmap of {q.counted(rows, 'row')} by "
                f"{q.counted(rows, 'column')} of workers: the stronger the color, the more the "
                "worker of the row sent to that of the column.",
                note=note if total > rows else "",
                query=transfers.pairs.query,
                command="",
            )
        )
    tables = context.tables(
        ("pairs", "Transfers by pair of workers", transfers.pairs, _PAIRS, "the largest"),
        has_view=False,
    )
    return replace(
        section,
        sentences=(text, movement.sentence(transfers, prefixes)),
        plots=plots,
        tables=tables,
    )
