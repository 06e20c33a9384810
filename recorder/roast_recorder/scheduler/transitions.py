"""Transitions of tasks, with the facts of attempts that Dask does not pass to plugins."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from time import monotonic, thread_time, time
from typing import TYPE_CHECKING, Any, Final

from roast_recorder.exception_text import received_text
from roast_recorder.scheduler.buffer import TRANSITION_VALUES_PER_BATCH, UNSEALED_SHARE, Buffer

if TYPE_CHECKING:
    from roast_recorder.scheduler.plugin import Recorder
    from roast_recorder.scheduler.wire_format import Row

#: Approximate memory of a value of a transition, with the texts and the times of the task.
BYTES_PER_VALUE: Final = 64

#: Longest text of an exception or a traceback; longer ones are cut in the middle.
MAX_ERROR_CHARACTERS: Final = 100_000

#: Loss of the facts of a transition whose key the scheduler does not have.
NOT_A_TASK: Final = "null, because the scheduler has no task of that key"


class Transitions:
    """Append every transition to a buffer.

    `on_first_result` is called when the first attempt has ended.
    """

    def __init__(
        self, core: Recorder, buffer: Buffer, on_first_result: Callable[[], None]
    ) -> None:
        self._core = core
        self._buffer = buffer
        self._on_first_result = on_first_result
        self._tasks = core.tasks.known
        self._erred_message: dict[str, Any] | None = None
        self._removal: dict[str, Any] = {}  # the last event of a worker's removal
        #: What workers execute, and since when, as of the last time that tasks were released.
        self._executing: dict[Any, float] = {}
        self._executing_until = 0.0  # on the monotonic clock: when it is collected again
        tap, scheduler = core.tap, core.scheduler
        with tap.source("transition"):
            remember = partial(setattr, self, "_erred_message")
            streams = scheduler.stream_handlers
            tap.message("transition", streams, "task-erred", remember, lambda _: remember(None))
        if "worker_transition" not in core.kinds:
            with tap.source("worker_transition"):
                streams = scheduler.stream_handlers
                tap.message("worker_transition", streams, "long-running", self._on_secession)

    def on_event(self, topic: Any, message: Any) -> None:
        """Note which tasks a worker that is removed was processing."""
        is_removal = isinstance(message, dict) and message.get("action") == "remove-worker"
        if is_removal and not isinstance(message.get("worker"), str):  # as on other topics
            self._removal = {**message, "worker": topic}

    def hook(self) -> Callable[..., None]:
        """Return the hook that Dask calls at each transition.

        It is a closure with named arguments: attribute lookups and a dict of keyword
        arguments would double its cost.
        """
        tasks = self._tasks
        values = self._buffer.transitions
        extend = values.extend
        seal = self._buffer.seal
        unsealed_bytes = self._core.settings["buffer_limit_bytes"] * UNSEALED_SHARE
        limit = min(TRANSITION_VALUES_PER_BATCH, int(unsealed_bytes / BYTES_PER_VALUE))
        now = time
        unreported = self._unreported_end
        begun_at = self._begun_at
        workers = self._core.workers
        new_keys = self._buffer.new_keys
        has_result = False

        # Everything has a default, so that Dask's call cannot fail before it is recorded, even
        # if it passes two more by position. Python looks up the default of each argument that
        # has to be named, which would be 8 % of what the recorder costs.
        def transition(
            key: Any = None,
            start: Any = None,
            finish: Any = None,
            _1: Any = None,
            _2: Any = None,
            stimulus_id: Any = None,
            worker: str | None = None,
            thread: int | None = None,
            nbytes: int | None = None,
            typename: str | None = None,
            startstops: Any = None,
            type: Any = None,  # noqa: A002, ARG001 - named, so that it is left out
            metadata: Any = None,  # noqa: ARG001
            status: Any = None,  # noqa: ARG001
            **others: Any,
        ) -> None:
            nonlocal has_result
            try:
                if finish == "processing":
                    task = tasks[key]
                    on = task.processing_on
                    address = on.address if on else None
                    extend((now(), key, start, finish, stimulus_id, address, task.run_id))
                elif start == "processing":
                    if not has_result:
                        has_result = True
                        self._on_first_result()
                    run_id = tasks[key].run_id
                    failure = start_t = None
                    if finish != "memory":
                        if "exception" in others or "exception_text" in others:
                            failure = error_of(others)
                        elif end := unreported(key, run_id, stimulus_id):
                            worker, thread, startstops, failure = end
                        # The start of the task, as of the worker's last heartbeat.
                        if worker is None and finish == "released":
                            start_t = begun_at(tasks[key])
                        elif worker and not startstops and (state := workers.get(worker)):
                            seconds = state.executing.get(tasks[key])
                            start_t = None if seconds is None else state.last_seen - seconds
                    extend(
                        (
                            now(), key, start, finish, stimulus_id,
                            worker, run_id, thread, nbytes, typename, startstops, failure,
                            start_t,
                        )
                    )  # fmt: skip
                else:
                    if start == "memory" and key.__class__ is not str:
                        new_keys.append(key)  # data scattered by a client enter here
                    extend((now(), key, start, finish, stimulus_id))
            except Exception as error:  # noqa: BLE001 - Dask's state is not as expected
                end = worker, thread, nbytes, typename, startstops, others
                self._record_odd(key, start, finish, stimulus_id, end, error)
            if len(values) > limit:
                seal()

        return transition

    def _record_odd(
        self,
        key: Any,
        start: Any,
        finish: Any,
        stimulus_id: Any,
        ending: tuple[Any, ...],
        error: Exception,
    ) -> None:
        """Record a transition whose facts could not all be read: those that can be."""
        if start is None or finish is None:
            self._core.tap.failed("transition", error)
            return
        read = partial(self._core.tap.read, "transition")
        task = self._tasks.get(key) if isinstance(self._tasks, dict) else None
        if task is None and "processing" in (start, finish):
            self._core.tap.lose("transition", NOT_A_TASK, 0, error)
        row: list[Any] = [time(), key, start, finish, stimulus_id]
        run_id = read(task, "run_id")
        if finish == "processing":
            row += [read(task, "processing_on.address"), run_id]
        elif start == "processing":
            worker, thread, nbytes, typename, startstops, others = ending
            failure = start_t = None
            if finish != "memory":
                with self._core.tap.guard("transition", 0):
                    if "exception" in others or "exception_text" in others:
                        failure = error_of(others)
                    elif end := self._unreported_end(key, run_id, stimulus_id):
                        worker, thread, startstops, failure = end
                    state = self._core.workers.get(worker or "")
                    executing, last_seen = read(state, "executing"), read(state, "last_seen")
                    if not startstops and executing and last_seen and task in executing:
                        start_t = last_seen - executing[task]
                    elif worker is None and finish == "released":
                        start_t = self._begun_at(task)
            row += [worker, run_id, thread, nbytes, typename, startstops, failure, start_t]
        self._buffer.transitions.extend(row)
        self._buffer.new_keys.append(key)

    def _unreported_end(self, key: Any, run_id: int | None, stimulus_id: str) -> Row | None:
        """Return worker, thread, startstops and failure that Dask does not pass to plugins."""
        message = self._erred_message
        # Without a run id of the task, the message that is being handled is its attempt's.
        if (
            message
            and message["key"] == key
            and (run_id is None or message.get("run_id") in (None, run_id))
        ):
            # The task will be retried.
            worker, thread = message.get("worker"), message.get("thread")
            return worker, thread, message.get("startstops"), error_of(message)
        removal = self._removal
        is_lost = removal.get("stimulus_id") == stimulus_id
        if is_lost and key in removal.get("processing-tasks", ()):
            # Work stealing moves tasks without a transition, so this worker can differ
            # from that of ``→ processing``.
            return removal["worker"], None, None, None
        return None

    def _begun_at(self, task: Any) -> float | None:
        """Return when a task that is no longer assigned began to execute, if that is known.

        The worker is not known either. Thousands of tasks can be released one by one, so that
        what all workers execute is collected in at most 2 % of the time. An attempt is returned
        once.
        """
        now = monotonic()
        if now >= self._executing_until:
            begin = thread_time()
            self._executing = {
                executed: worker.last_seen - seconds
                for worker in self._core.workers.values()
                for executed, seconds in worker.executing.items()
            }
            self._executing_until = now + 50 * (thread_time() - begin)
        return self._executing.pop(task, None)

    def _on_secession(self, message: dict[str, Any]) -> None:
        """Record that a task has left the threads of its worker, which no phase contains.

        Unlike the other transitions on workers, it is always recorded.
        """
        kind, worker = "worker_transition", message["worker"]
        fields = {
            "key": str(message["key"]),
            "start": "executing",
            "finish": "long-running",
            "stimulus_id": message["stimulus_id"],
            "worker": worker,
            "server_id": self._core.server_id(kind, worker),
        }
        self._buffer.append((kind, round(time(), 6), 1, fields))


def error_of(details: dict[str, Any]) -> dict[str, Any]:
    """Return the readable parts of an error, from Dask's arguments or a worker's message."""
    text, exception = details.get("exception_text"), details.get("exception")
    if not text and isinstance(exception, bytes):
        # KilledWorker is passed only as a pickle.
        try:
            error = pickle.loads(exception)  # noqa: S301 - the scheduler's own
            text = _cut(repr(error).partition("(")[0] + f": {error}")
        except Exception:  # noqa: BLE001
            text = "an exception that cannot be read"
    elif text:
        text = received_text(_cut(text), exception)
    return {
        "exception": text,
        "traceback": _cut(details.get("traceback_text") or "") or None,
        "cause": None if details.get("cause") is None else str(details["cause"]),
    }


def _cut(text: str) -> str:
    """Return the beginning and the end of a text that is too long for a record."""
    if len(text) <= MAX_ERROR_CHARACTERS:
        return text
    half = MAX_ERROR_CHARACTERS // 2
    return f"{text[:half]}… ({len(text):,} characters) …{text[-half:]}"
