"""Functions that return the rows of the tables computed in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.computed import (
    busy_time,
    chain_waits,
    core_time,
    critical_path,
    findings,
    seceded_samples,
    task_slack,
    wall_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from roast_analyze.open.session import Session

#: Function that returns the rows of each table, by its name.
TABLES: Final[Mapping[str, Callable[[Session], pl.DataFrame]]] = {
    "_busy_time": busy_time.query,
    "_chain_waits": chain_waits.query,
    "_core_time": core_time.query,
    "_critical_path": critical_path.query,
    "_findings": findings.query,
    "_seceded_samples": seceded_samples.query,
    "_task_slack": task_slack.query,
    "_wall_time": wall_time.query,
}
