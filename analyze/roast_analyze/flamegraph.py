"""A flame graph of a part of a trace: the stacks, and a figure of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from roast_analyze.errors import TraceError
from roast_analyze.export.scope import part_of

if TYPE_CHECKING:
    import polars as pl
    from plotly.graph_objects import Figure

    from roast_analyze.open.session import Session


@dataclass(frozen=True)
class Flamegraph:
    """Where the time went inside tasks.

    Parameters
    ----------
    stacks : polars.DataFrame
        A row per stack: stack, samples, seconds, ambiguous_samples, counted_samples,
        frames, lines, interval_seconds, as in the view ``profile_stacks``.
    baseline : polars.DataFrame, optional
        Stacks to compare with.
    """

    stacks: pl.DataFrame
    baseline: pl.DataFrame | None = None

    @cached_property
    def figure(self) -> Figure:
        """Icicle of the stacks; with a baseline, coloured by what became slower."""
        from roast_analyze.figures.flame import flame

        return flame(self.nodes, None if self.baseline is None else self._baseline_nodes)

    @cached_property
    def nodes(self) -> pl.DataFrame:
        """Tree of the stacks, as :func:`~roast_analyze.algorithms.profiles.flame_nodes`."""
        from roast_analyze.algorithms.profiles import flame_nodes

        return flame_nodes(self.stacks)

    @property
    def _baseline_nodes(self) -> pl.DataFrame:
        from roast_analyze.algorithms.profiles import flame_nodes

        assert self.baseline is not None  # noqa: S101 - asked only with one
        return flame_nodes(self.baseline)

    def difference(self, by: Literal["stack", "function"] = "function") -> pl.DataFrame:
        """Tell what became slower since the baseline, that first.

        See :func:`roast_analyze.algorithms.profiles.difference`.

        Raises
        ------
        TraceError
            If there is no baseline.
        """
        from roast_analyze.algorithms.profiles import difference

        if self.baseline is None:
            raise TraceError("there is no baseline; call flamegraph(baseline=another)")
        return difference(self.stacks, self.baseline, by=by)

    def counted(self) -> pl.DataFrame:
        """Give the stacks as Dask counts them.

        See :func:`roast_analyze.algorithms.profiles.counted`.
        """
        from roast_analyze.algorithms.profiles import counted

        return counted(self.stacks)


#: A slice belongs where its middle lies: to one of two stretches that touch, not to both.
_MIDDLE = "(start_t + stop_t) / 2"


def stacks_of(
    trace: Session,
    *,
    worker: str | None = None,
    prefix: str | None = None,
    start: float | None = None,
    stop: float | None = None,
    profiler: str = "dask",
) -> pl.DataFrame:
    """Add up the stacks of a part of a trace; parameters as ``Trace.flamegraph`` has them."""
    scope = part_of(trace, worker=worker, prefix=prefix, start=start, stop=stop)
    part = scope.condition(begin=_MIDDLE, end=_MIDDLE)
    # A process that Yappi measured need not be known; a null of Dask's is the scheduler.
    of_workers = "true" if scope.scheduler or profiler != "dask" else "worker IS NOT NULL"
    # Only names of columns are written into the text.
    query = (
        "SELECT stack, sum(samples)::BIGINT AS samples, "  # noqa: S608
        "sum(seconds) AS seconds, "
        "sum(ambiguous_samples)::BIGINT AS ambiguous_samples, "
        "sum(counted_samples)::BIGINT AS counted_samples, any_value(frames) AS frames, "
        "arg_min(lines, start_t) AS lines, any_value(interval_seconds) AS interval_seconds "
        f"FROM profile_stacks WHERE profiler = $profiler AND {of_workers} "
        f"AND {part.sql} "
        "GROUP BY stack ORDER BY seconds DESC, stack"
    )
    frame: pl.DataFrame = trace.sql(query, {**part.parameters, "profiler": profiler}).pl()
    return frame
