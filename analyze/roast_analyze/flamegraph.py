"""Flame graphs of a part of a trace: the stacks, and a figure of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from roast_analyze.errors import TraceError
from roast_analyze.export.scope import Condition, find_scope
from roast_analyze.open.time_range import parse_range

if TYPE_CHECKING:
    import polars as pl
    from plotly.graph_objects import Figure

    from roast_analyze.open.session import Session

#: A slice of the profile belongs to a time range if its middle does, so that it counts in
#: only one of two adjacent ranges.
_MIDDLE = "(start_t + stop_t) / 2"


@dataclass(frozen=True)
class Flamegraph:
    """The time inside tasks.

    Parameters
    ----------
    stacks : polars.DataFrame
        One row per stack: stack, samples, seconds, ambiguous_samples, counted_samples,
        frames, lines, start_t, interval_seconds, as in the view ``profile_stacks``;
        folded_stack and folded_frames, the same without functions of the recorder (see
        ``sql/profiles/_fold_recorder.sql``).
    baseline : polars.DataFrame, optional
        Stacks to compare with.
    """

    stacks: pl.DataFrame
    baseline: pl.DataFrame | None = None

    # The methods import polars and plotly themselves, because these imports would slow down
    # every command that opens a trace.
    @cached_property
    def figure(self) -> Figure:
        """Icicle of the stacks; with a baseline, the colors show the difference to it."""
        from roast_analyze.figures.flame import flame

        return flame(
            self.nodes, None if self.baseline is None else Flamegraph(self.baseline).nodes
        )

    @cached_property
    def nodes(self) -> pl.DataFrame:
        """Tree of the folded stacks.

        See :func:`roast_analyze.algorithms.profiles.flame_nodes`.
        """
        from roast_analyze.algorithms.profiles import flame_nodes

        return flame_nodes(self._folded)

    def difference(self, by: Literal["stack", "function"] = "function") -> pl.DataFrame:
        """Compare with the baseline; the largest increase comes first.

        See :func:`roast_analyze.algorithms.profiles.difference`.

        Raises
        ------
        TraceError
            If there is no baseline.
        """
        from roast_analyze.algorithms.profiles import difference

        if self.baseline is None:
            raise TraceError("there is no baseline: call flamegraph(baseline=another)")
        return difference(self._folded, Flamegraph(self.baseline)._folded, by=by)

    def counted(self) -> pl.DataFrame:
        """Count the samples as Dask does.

        See :func:`roast_analyze.algorithms.profiles.counted`.
        """
        from roast_analyze.algorithms.profiles import counted

        return counted(self.stacks)

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, Any]:
        from roast_analyze.figures.picture import icicle_to_svg
        from roast_analyze.notebook import figure_bundle

        seconds = float(self.stacks["seconds"].sum())
        text = f"Flamegraph of {len(self.stacks)} stacks, {seconds:.1f} s"
        bundle = figure_bundle(self.figure, text)
        # A figure without samples has only a note.
        for icicle in self.figure.data:
            bundle["image/svg+xml"] = icicle_to_svg(icicle, text)
        return bundle

    @property
    def _folded(self) -> pl.DataFrame:
        import polars as pl

        # Without both, a stack is only counted as Dask does. Yappi's samples are rounded.
        has_samples = pl.col("samples") + pl.col("ambiguous_samples") > 0
        sampled = self.stacks.filter(has_samples | (pl.col("seconds") > 0))
        return sampled.with_columns(stack="folded_stack", frames="folded_frames")


def stacks_of(
    trace: Session,
    *,
    worker: str | None = None,
    prefix: str | None = None,
    start: float | str | None = None,
    stop: float | str | None = None,
    profiler: str = "dask",
) -> pl.DataFrame:
    """Add up the stacks of a part of a trace; parameters as in ``Trace.flamegraph``."""
    scope = find_scope(trace, worker=worker, prefix=prefix)
    part = scope.condition()
    times = _time_range(trace, start, stop)
    # In Dask's samples a null worker is the scheduler; Yappi files can have an unknown one.
    of_workers = "true" if scope.scheduler or profiler != "dask" else "worker IS NOT NULL"
    # Only column names are inserted into the text.
    query = (
        "SELECT *, _folded_stack(stack, frames) AS folded_stack, "  # noqa: S608
        "_folded_frames(frames) AS folded_frames FROM ("
        "SELECT stack, try_cast(sum(samples) AS BIGINT) AS samples, "
        "sum(seconds) AS seconds, "
        "try_cast(sum(ambiguous_samples) AS BIGINT) AS ambiguous_samples, "
        "try_cast(sum(counted_samples) AS BIGINT) AS counted_samples, "
        "any_value(frames) AS frames, "
        "arg_min(lines, start_t) AS lines, min(start_t) AS start_t, "
        "any_value(interval_seconds) AS interval_seconds "
        f"FROM profile_stacks WHERE profiler = $profiler AND {of_workers} "
        f"AND {part.sql} AND {times.sql} "
        "GROUP BY stack) ORDER BY seconds DESC, stack"
    )
    frame: pl.DataFrame = trace.sql(
        query, {**part.parameters, **times.parameters, "profiler": profiler}
    ).pl()
    return frame


def _time_range(
    trace: Session, start: float | str | None, stop: float | str | None
) -> Condition:
    """Return the condition for slices of a time range of each trace, as of a session."""
    if start is None and stop is None:
        return Condition("true", {})
    parts: list[str] = []
    parameters: dict[str, object] = {}
    for trace_id, *run in trace.rows(
        "SELECT run.trace_id, run.start_t, run.stop_t, "
        "coalesce(any_value(utc_offset_seconds), 0) "
        "FROM run LEFT JOIN trace_info USING (trace_id) GROUP BY ALL ORDER BY ALL"
    ):
        names = [f"{name}_{len(parts)}" for name in ("trace_id", "from_t", "until_t")]
        parameters |= zip(names, (trace_id, *parse_range(start, stop, *run)), strict=True)
        parts.append(
            "(trace_id = ${} AND coalesce({middle} >= ${}, true) "
            "AND coalesce({middle} < ${}, true))".format(*names, middle=_MIDDLE)
        )
    return Condition(" OR ".join(parts).join("()"), parameters)
