"""Identify the chunk that a task will process, from the task on the scheduler.

`coffea.processor.Runner` passes one ``WorkItem`` a chunk to its :class:`DaskExecutor`, and
dask-awkward passes file, tree and entries to uproot's reader. Both are parts of the task, so
the chunk is known without any change to the user's code, before the task runs and even if
it never does.

coffea is never imported: a work item is recognized by its attributes.

Processors that are tracked by hand have no such task: their events identify the chunk.
"""

from __future__ import annotations

import sys
from typing import Any
from urllib.parse import unquote

try:
    import dask._task_spec as task_spec
except ImportError:  # until 2024.11 tasks were tuples
    task_spec = None  # type: ignore[assignment]

#: Maximum number of characters recorded of the user's metadata.
MAX_USERMETA_LENGTH = 4_096

#: Maximum number of parts of a task that are searched for the arguments of uproot's reader.
MAX_PARTS = 300

#: Types of the first argument of most tasks that are not chunks.
_NO_WORK_ITEMS = frozenset(
    {int, float, str, bytes, bool, list, dict, type(None), getattr(task_spec, "TaskRef", int)}
)

Fields = dict[str, Any]


def chunk_identity(run_spec: Any, seen_usermeta: dict[int, Any] | None = None) -> Fields | None:
    """Return the fields of a ``chunk`` record that identify the chunk of a task, or None.

    Tasks in which coffea reads the number of entries of a file are identified as well,
    without entries. If a file is missing, these tasks fail, and Dask's text of a
    FileNotFoundError lacks the file's name.

    `seen_usermeta` maps the id of metadata to its recorded form. The chunks of a dataset
    share theirs, which can be large. Keep the dict no longer than the tasks.
    """
    if "uproot._dask" in sys.modules and (identity := _uproot_identity(run_spec)):
        return identity
    # This runs for every task of a cluster: reject as early as possible.
    legacy = type(run_spec) is tuple
    arguments = run_spec[1:] if legacy else getattr(run_spec, "args", ())
    if not arguments or type(arguments[0]) in _NO_WORK_ITEMS:
        return None
    item = find_work_item(run_spec)
    return None if item is None else work_item_identity(item, seen_usermeta)


def find_work_item(candidate: Any, depth: int = 3) -> Any | None:
    """Return the work item among the first arguments of a task, or None."""
    # With a broadcast processor, coffea puts both into a tuple, which Dask wraps into an
    # inner task. Until 2024.11 a task was a tuple of a function and its arguments.
    if all(hasattr(candidate, name) for name in ("treename", "filename", "dataset")):
        return candidate
    parts = candidate if isinstance(candidate, tuple) else getattr(candidate, "args", None)
    if depth == 0 or not isinstance(parts, (tuple, list)):
        return None
    found = (find_work_item(part, depth - 1) for part in parts[:2])
    return next((item for item in found if item is not None), None)


def work_item_identity(item: Any, seen_usermeta: dict[int, Any] | None = None) -> Fields:
    """Return the identity of a work item's chunk; entries are None if it has none."""
    usermeta = getattr(item, "usermeta", None)
    seen = {} if seen_usermeta is None else seen_usermeta
    if id(usermeta) not in seen:
        seen[id(usermeta)] = _bounded(usermeta)
    uuid = getattr(item, "fileuuid", None)
    start, stop = (getattr(item, name, None) for name in ("entrystart", "entrystop"))
    return {
        "dataset": item.dataset,
        "filename": str(item.filename),
        "treename": item.treename,
        # They can be numpy integers.
        "entry_start": None if start is None else int(start),
        "entry_stop": None if stop is None else int(stop),
        "file_uuid": uuid.hex() if isinstance(uuid, bytes) else uuid and str(uuid),
        "usermeta": seen[id(usermeta)],
    }


def reader_identity(
    reader: Any, filename: Any, treename: Any, start: Any, stop: Any, are_entries: Any
) -> Fields:
    """Return the identity of the chunk that uproot's reader for dask-awkward reads."""
    # coffea adds the dataset and the user's metadata to the reader.
    usermeta = dict(getattr(reader.form_mapping_info, "metadata", None) or {})
    dataset = usermeta.pop("dataset", None)
    return {
        "dataset": None if dataset is None else str(dataset),
        "usermeta": _bounded(usermeta),
        "filename": str(filename),
        "treename": treename,
        # Otherwise they are the number of a step and the number of steps.
        "entry_start": int(start) if are_entries else None,
        "entry_stop": int(stop) if are_entries else None,
    }


def events_identity(events: Any) -> Fields | None:
    """Return the identity of a chunk from its events; None if lazy or without a file."""
    if hasattr(events, "dask"):
        return None
    known: Fields = {}
    metadata = getattr(events, "metadata", None) or {}
    factory = getattr(events, "attrs", {}).get("@events_factory")
    if factory is not None:
        # The key of a NanoEventsFactory is ``uuid/tree/entries``.
        uuid, tree, _ = map(unquote, factory._partition_key.split("/"))
        file = getattr(factory.file_handle, "file", factory.file_handle)
        known = {
            "fileuuid": uuid,
            "treename": tree.strip("/").partition(";")[0],
            "filename": getattr(file, "file_path", None),
        }
        # coffea writes "None" where a Parquet file has neither.
        known = {name: value for name, value in known.items() if value != "None"}
    elif "filename" not in metadata:
        return None
    known |= metadata
    dataset, filename = known.get("dataset"), known.get("filename")
    return {
        "dataset": None if dataset is None else str(dataset),
        "filename": filename and str(filename),
        "treename": known.get("treename"),
        "file_uuid": str(known.get("fileuuid") or "").replace("-", "") or None,
    }


def _uproot_identity(run_spec: Any) -> Fields | None:
    """Identify the chunk of a dask-awkward task that reads one range of one file."""
    # ``uproot.dask`` passes ``(filename, treename, start, stop, True)`` to a reader. Both
    # can be nested deeply in a fused task.
    reader, ranges, queue = None, [], [run_spec]
    for _ in range(MAX_PARTS):
        if not queue:
            break
        part = queue.pop()
        if isinstance(part, tuple) and tuple(map(type, part)) == (str, str, int, int, bool):
            ranges.append(part)
        elif isinstance(part, (tuple, list)):
            queue.extend(part)
        elif isinstance(part, dict):
            queue.extend(part.values())
        elif hasattr(type(part), "read_tree"):
            reader = part
        else:
            inner = (getattr(part, name, None) for name in ("func", "args", "dsk", "value"))
            queue.extend(found for found in inner if found is not None)
    # A task that reads several ranges is several chunks, which are identified on the worker.
    if reader is None or len(ranges) != 1:
        return None
    return reader_identity(reader, *ranges[0])


def _bounded(usermeta: Any) -> Any:
    if usermeta is None or (isinstance(usermeta, dict) and not usermeta):
        return None
    text = str(usermeta)
    return usermeta if len(text) <= MAX_USERMETA_LENGTH else text[:MAX_USERMETA_LENGTH] + "…"
