"""The keys that each client wants, whose results Dask therefore keeps.

Plugins are not notified of them. They change with messages of clients, and with calls of the
scheduler's own methods: by graphs, scattered data, queues, variables, published datasets and
clients that leave. A call is recorded as it changes the state; keys that are wanted already,
or unknown, are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any, Final

from roast_recorder.probes import SchedulerProbe
from roast_recorder.scheduler.wire_format import Record, Row, need_text, text

if TYPE_CHECKING:
    from distributed.scheduler import TaskState


#: Keys after which rows are appended. A row has less than twice as many.
KEYS_PER_PART: Final = 1_000

#: Approximate size of a key in memory.
KEY_BYTES: Final = 100

#: Changes of a client within this time are merged, with the time of the first.
SAME_SECONDS: Final = 0.001


class OnScheduler(SchedulerProbe):
    """Record the changes of each client's wanted keys.

    Rows wait here until a pull: a program that submits tasks one by one would otherwise cause
    two records for each. Rows of large changes are deferred, with an estimate of their size: a
    million keys would block the scheduler.
    """

    def _install(self) -> None:
        core = self.core
        self._scheduler = scheduler = core.scheduler
        # What a client wanted before the large change that is being handled.
        self._before: set[TaskState] = set()
        # Time, action and keys of each change, by client.
        self._changes: dict[str, list[tuple[float, str, list[Any]]]] = {}
        self._keys = 0
        for client, state in scheduler.clients.items():
            if len(state.wants_what) > KEYS_PER_PART:
                self._defer_tasks(client, "desires", list(state.wants_what))
            else:
                self._add(client, "desires", [str(task.key) for task in state.wants_what])
        handlers: Any = scheduler.stream_handlers
        for action in ("desires", "releases"):
            calls = partial(self._on_call, action), partial(self._on_called, action)
            names = ("keys", "client")
            # The handlers of messages are references to the methods before these are wrapped.
            core.tap.message("wanted_keys", handlers, f"client-{action}-keys", *calls)
            method = f"client_{action}_keys"
            core.tap.method("wanted_keys", scheduler, method, *calls, positional=names)

    def before_pull(self) -> None:
        """Append a row for each client."""
        now = time()
        for client, changes in self._changes.items():
            self.core.append(("wanted_keys", now, 1, (client, changes)))
        self._changes, self._keys = {}, 0

    finish = before_pull

    def _on_call(self, action: str, message: dict[str, Any]) -> None:
        client, tasks = message["client"], self._scheduler.tasks
        state = self._scheduler.clients.get(client)
        if len(message["keys"]) > KEYS_PER_PART:
            self._before = set(state.wants_what) if state else set()
            return
        is_wanted = action == "releases"
        changed = [
            key
            for key, task in zip(message["keys"], map(tasks.get, message["keys"]), strict=True)
            # Faster than `task in state.wants_what`: most desired tasks have no client yet.
            if task is not None and (state in (task.who_wants or ())) is is_wanted
        ]
        # Encoding a tuple is faster than its text, which the writing process makes.
        if need_text(changed):
            changed = list(map(str, changed))
        self._add(client, action, changed)

    def _on_called(self, action: str, message: dict[str, Any]) -> None:
        """Record a large change: the difference that it has made, which sets find fast."""
        if len(message["keys"]) <= KEYS_PER_PART:
            return
        before, self._before = self._before, set()
        state = self._scheduler.clients.get(message["client"])
        after: set[TaskState] = state.wants_what if state else set()
        client, keys = message["client"], list(message["keys"])
        if abs(len(after) - len(before)) == len(keys):
            self._defer_keys(client, action, len(keys), keys)
        else:  # some had been wanted, or are unknown
            changed = after - before if action == "desires" else before - after
            self._defer_tasks(client, action, list(changed))

    def _defer_tasks(self, client: str, action: str, tasks: list[TaskState]) -> None:
        self._defer_keys(client, action, len(tasks), (task.key for task in tasks))

    def _defer_keys(self, client: str, action: str, number: int, keys: Iterable[Any]) -> None:
        t, texts = time(), map(str, keys)

        def rows() -> Iterator[Row | None]:
            while part := list(itertools.islice(texts, KEYS_PER_PART)):
                yield "wanted_keys", time(), 1, (client, [(t, action, part)])

        # The scheduler has the keys as well, until it forgets their tasks.
        self.core.defer(
            "wanted_keys", rows(), number * (8 if action == "desires" else KEY_BYTES)
        )

    def _add(self, client: str, action: str, keys: list[Any]) -> None:
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
                self.before_pull()


def _wanted_keys(kind: str, t: float, content: Row) -> list[Record]:
    """Return the record of a client's changes of wanted keys."""
    client, changes = content
    listed = [
        {"t": round(change_t, 6), "action": action, "keys": list(map(text, keys))}
        for change_t, action, keys in changes
    ]
    return [{"kind": kind, "t": t, "client": client, "changes": listed}]


DECODERS = {"wanted_keys": _wanted_keys}
