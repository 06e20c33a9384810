"""The keys that each client wants, whose results Dask therefore keeps.

Plugins are not notified of them. They change with messages of clients, and with calls of the
scheduler's own methods: by graphs, scattered data, queues, variables, published datasets and
clients that leave. A call is recorded as it changes the state; keys that are wanted already,
or unknown, are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from distributed import Scheduler

    from roast_recorder.scheduler.tap import Tap
    from roast_recorder.scheduler.wire_format import Row

#: Keys after which rows are appended. A row has less than twice as many.
KEYS_PER_PART: Final = 1_000

#: Changes of a client within this time are merged, with the time of the first.
SAME_SECONDS: Final = 0.001


class WantedKeys:
    """Append the changes of each client's wanted keys, until the tap is closed.

    Rows wait here until :meth:`seal`: a program that submits tasks one by one would otherwise
    cause two records for each.
    """

    def __init__(self, scheduler: Scheduler, append: Callable[[Row], None], tap: Tap) -> None:
        self._scheduler = scheduler
        self._append = append
        # Time, action and keys of each change, by client.
        self._changes: dict[str, list[tuple[float, str, list[str]]]] = {}
        self._keys = 0
        for client, state in scheduler.clients.items():
            self._add(client, "desires", [str(task.key) for task in state.wants_what])
        handlers: Any = scheduler.stream_handlers
        for action in ("desires", "releases"):
            on_call, names = partial(self._on_call, action), ("keys", "client")
            # The handlers of messages are references to the methods before these are wrapped.
            tap.message("wanted_keys", handlers, f"client-{action}-keys", on_call)
            method = f"client_{action}_keys"
            tap.method("wanted_keys", scheduler, method, on_call, positional=names)

    def seal(self) -> None:
        """Append a row for each client."""
        now = time()
        for client, changes in self._changes.items():
            self._append(("wanted_keys", now, 1, (client, changes)))
        self._changes, self._keys = {}, 0

    def _on_call(self, action: str, message: dict[str, Any]) -> None:
        client, tasks = message["client"], self._scheduler.tasks
        state = self._scheduler.clients.get(client)
        is_wanted = action == "releases"
        changed = [
            key if key.__class__ is str else str(key)
            for key, task in zip(message["keys"], map(tasks.get, message["keys"]), strict=True)
            # Faster than `task in state.wants_what`: most desired tasks have no client yet.
            if task is not None and (state in (task.who_wants or ())) is is_wanted
        ]
        self._add(client, action, changed)

    def _add(self, client: str, action: str, keys: list[str]) -> None:
        t = time()
        for first in range(0, len(keys), KEYS_PER_PART):
            part = keys[first : first + KEYS_PER_PART]
            changes = self._changes.setdefault(client, [])
            if changes and changes[-1][1] == action and t - changes[-1][0] < SAME_SECONDS:
                changes[-1][2].extend(part)
            else:
                changes.append((t, action, part))
            self._keys += len(part)
            if self._keys >= KEYS_PER_PART:
                self.seal()
