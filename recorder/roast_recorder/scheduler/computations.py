"""Computations: what Dask calls the graphs that arrive until the scheduler is idle again."""

from __future__ import annotations

from typing import Any, Final

from roast_recorder.graphs import CodeRegistry, describe_code

_MAX_CODES: Final = 20


class Computations:
    """Describes each computation of a scheduler once.

    Parameters
    ----------
    code : bool
        Whether to include the code that Dask keeps with a computation. Clients send it if
        ``distributed.diagnostics.computations.nframes`` of their configuration is not 0.
    """

    def __init__(self, *, code: bool) -> None:
        self._with_code = code
        self._last: tuple[Any, int] = (None, 0)
        self._registry = CodeRegistry()

    def describe_new(self, scheduler: Any) -> dict[str, Any] | None:
        """Describe the computation of the graph that has just arrived.

        Returns
        -------
        dict or None
            Fields of a record; None if there is nothing new.
        """
        computation = scheduler.computations[-1]
        stacks = list(computation.code) if self._with_code else []
        latest = (computation.id, len(stacks))
        if latest == self._last:
            return None
        self._last = latest
        codes = [
            self._registry.register(
                describe_code(
                    frame.code,
                    frame.filename,
                    frame.lineno_frame,
                    frame.lineno_frame - frame.lineno_relative,
                )
            )
            for stack in stacks[:_MAX_CODES]
            for frame in stack[:_MAX_CODES]
        ]
        return {"name": str(computation.id), "value": {"codes": codes} if codes else None}
