"""What a scheduler calls a computation: the graphs that come until it has nothing to do."""

from __future__ import annotations

from typing import Any, Final

from roast_recorder.graphs import Codes, described

#: Annotations are the user's, and recorded with each task.
Fields = dict[str, Any]

_MAX_PER_COMPUTATION: Final = 20


class Computations:
    """Describes each computation of a scheduler once, and the code that it is of.

    Parameters
    ----------
    code : bool
        Whether the code is told that Dask keeps with it. Clients send that if
        ``distributed.diagnostics.computations.nframes`` of their configuration is not 0.
    """

    def __init__(self, *, code: bool) -> None:
        self._with_code = code
        self._last: tuple[Any, int] = (None, 0)
        self._codes = Codes()

    def news(self, scheduler: Any) -> Fields | None:
        """Describe the computation that a graph belongs to which came just now.

        Returns
        -------
        dict or None
            Fields of a record; None if there is nothing new to tell.
        """
        computation = scheduler.computations[-1]
        codes = computation.code if self._with_code else ()
        now = (computation.id, len(codes))
        if now == self._last:
            return None
        self._last = now
        value: Fields = {}
        if codes:
            value["codes"] = [
                self._once(code) for codes_of_one in list(codes)[:_MAX_PER_COMPUTATION]
                for code in codes_of_one[:_MAX_PER_COMPUTATION]
            ]  # fmt: skip
        return {"name": str(computation.id), "value": value or None}

    def _once(self, code: Any) -> Fields:
        first = code.lineno_frame - code.lineno_relative
        return self._codes.once(described(code.code, code.filename, code.lineno_frame, first))
