"""``%load_ext roast_recorder``: the cell magic ``%%record`` of IPython and Jupyter."""

from __future__ import annotations

import ast
import importlib.util
import shlex
import sys
from typing import TYPE_CHECKING, Any

from distributed import default_client
from IPython.core.error import UsageError

from roast_recorder.api import record

if TYPE_CHECKING:
    from distributed import Client


def load_ipython_extension(shell: Any) -> None:
    """Register ``%%record`` in an IPython shell."""

    def record_cell(line: str, cell: str) -> None:
        """Record this cell, then show its verdict, findings and timeline.

        Usage: %%record [TRACE]

        The default client of Dask is recorded or, without one, the chunks that coffea
        processes in this process. TRACE is a file or a folder; the default is a new file in
        the working directory. An exception of the cell is raised after the trace is shown.
        """
        # Read by IPython, which leaves this frame out of tracebacks.
        __tracebackhide__ = True
        words = shlex.split(line)
        if len(words) > 1:
            raise UsageError(f"invalid arguments {line!r}: use %%record, or %%record TRACE")
        # Under this name tracebacks find the source.
        number = len(shell.history_manager.input_hist_raw) - 1
        name = shell.compile.cache(cell, number, raw_code=cell)
        client = _client()
        recording = record(client, words[0] if words else None)
        failure = None
        with recording:
            try:
                tree = shell.transform_ast(ast.parse(shell.transform_cell(cell), name))
                is_shown = bool(tree.body) and isinstance(tree.body[-1], ast.Expr)
                last = [tree.body.pop()] if is_shown else []
                # A module displays no values, an interactive statement does.
                for part, mode in ((tree, "exec"), (ast.Interactive(last), "single")):
                    exec(compile(part, name, mode), shell.user_ns)  # noqa: S102 - the user's
            except BaseException as error:  # noqa: BLE001 - raised below
                failure = error
        if client is None and _client() is not None:
            print(
                "roast: this cell created its Dask client, so the cluster was not recorded: "
                "create the client in an earlier cell",
                file=sys.stderr,
            )
        _show(recording.path)
        if failure is not None:
            raise failure

    shell.register_magic_function(record_cell, "cell", "record")


def _client() -> Client | None:
    try:
        client: Client = default_client()
    except ValueError:  # there is none
        return None
    return client


def _show(path: str) -> None:
    if importlib.util.find_spec("duckdb") is None:
        print(f"roast: {path}; to show it here: pip install '.[analyze]' in a clone of roast")
        return
    try:
        from roast_analyze import Trace
        from roast_analyze.notebook import publish

        with Trace(path) as trace:
            publish(trace)
    except Exception as error:  # noqa: BLE001 - an exception of the cell matters more
        print(f"roast: {path} cannot be shown: {error}", file=sys.stderr)
