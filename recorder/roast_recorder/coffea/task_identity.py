"""What a coffea chunk is, read off its task on the scheduler.

`coffea.processor.Runner` hands its :class:`DaskExecutor` one ``WorkItem`` a chunk, and the
work item travels inside the task. Looking at it there needs no change of anybody's code,
and works before the task runs and if it never does.

coffea itself is never imported: a work item is recognised by what it has.
"""

from __future__ import annotations

import sys
from typing import Any

try:
    import dask._task_spec as task_spec
except ImportError:  # until 2024.11 tasks were tuples
    task_spec = None  # type: ignore[assignment]

#: Text of the user's metadata beyond this many characters is left out.
MAX_USERMETA_LENGTH = 4_096


#: Parts of a task that are looked at in search of what uproot is to read.
MAX_PARTS = 300

#: What stands first among the arguments of most tasks.
_NO_WORK_ITEMS = frozenset(
    {int, float, str, bytes, bool, list, dict, type(None), getattr(task_spec, "TaskRef", int)}
)


def chunk_identity(
    run_spec: Any, seen_usermeta: dict[int, Any] | None = None
) -> dict[str, Any] | None:
    """Describe the chunk that a task will process.

    Before there are chunks, coffea asks each file how many entries it has. Those tasks are
    described too, without entries: when a file is missing, it is they that fail, and
    Dask's text of a FileNotFoundError does not name the file.

    Parameters
    ----------
    run_spec : object
        The scheduler's ``TaskState.run_spec``.
    seen_usermeta : dict, optional
        What was made of metadata before, by its id. The chunks of a dataset share theirs,
        which can be large; keep the dict no longer than the tasks.

    Returns
    -------
    dict or None
        Fields of a ``chunk`` record, without the key; None if this is no chunk.
    """
    # Nearly all tasks of a cluster are no chunks: say so as fast as can be.
    legacy = type(run_spec) is tuple
    arguments = run_spec[1:] if legacy else getattr(run_spec, "args", ())
    if "uproot._dask" in sys.modules and (read := _uproot_read(run_spec)):
        return read
    if not arguments or type(arguments[0]) in _NO_WORK_ITEMS:
        return None
    item = find_work_item(run_spec)
    if item is None:
        return None
    usermeta = usermeta_of(item, {} if seen_usermeta is None else seen_usermeta)
    return {**as_identity(item), "usermeta": usermeta}


def as_identity(item: Any) -> dict[str, Any]:
    """Describe a work item, but for the user's metadata.

    Parameters
    ----------
    item : object
        As :func:`find_work_item` finds it.

    Returns
    -------
    dict
        Fields of a ``chunk`` record; entries are None if it has none.
    """
    uuid = getattr(item, "fileuuid", None)
    return {
        "dataset": item.dataset,
        "filename": str(item.filename),
        "treename": item.treename,
        "entry_start": _int(getattr(item, "entrystart", None)),
        "entry_stop": _int(getattr(item, "entrystop", None)),
        "file_uuid": uuid.hex() if isinstance(uuid, bytes) else uuid and str(uuid),
    }


def _uproot_read(run_spec: Any) -> dict[str, Any] | None:
    """Describe what a task of dask-awkward's reads, if it reads one stretch of one file.

    ``uproot.dask`` gives each task ``(filename, treename, start, stop, True)``, and what is
    called with it knows the dataset; both may lie deep inside a task that was fused.
    """
    reader, reads, waiting = None, [], [run_spec]
    for _ in range(MAX_PARTS):
        if not waiting:
            break
        part = waiting.pop()
        if isinstance(part, tuple) and tuple(map(type, part)) == (str, str, int, int, bool):
            reads.append(part)
        elif isinstance(part, (tuple, list)):
            waiting.extend(part)
        elif isinstance(part, dict):
            waiting.extend(part.values())
        elif hasattr(type(part), "read_tree"):
            reader = part
        else:
            inner = (getattr(part, name, None) for name in ("func", "args", "dsk", "value"))
            waiting.extend(found for found in inner if found is not None)
    if reader is None or len(reads) != 1:
        return None
    filename, treename, start, stop, are_entries = reads[0]
    return {
        **metadata_of(reader),
        "filename": filename,
        "treename": treename,
        # Else they are the number of a step and how many there are.
        "entry_start": start if are_entries else None,
        "entry_stop": stop if are_entries else None,
    }


def metadata_of(reader: Any) -> dict[str, Any]:
    """Give the metadata that coffea puts into the form of uproot's reader.

    Returns
    -------
    dict
        ``dataset`` and ``usermeta``, bounded, of a ``chunk`` record.
    """
    usermeta = dict(getattr(reader.form_mapping_info, "metadata", None) or {})
    dataset = usermeta.pop("dataset", None)
    return {
        "dataset": None if dataset is None else str(dataset),
        "usermeta": _bounded(usermeta),
    }


def _int(value: Any) -> int | None:
    """Make an int of numpy's, too."""
    return None if value is None else int(value)


def find_work_item(candidate: Any, depth: int = 3) -> Any | None:
    """Find the work item among the first arguments of a task.

    With a broadcast processor, coffea zips the item with it into a tuple, which Dask wraps
    into a task of its own. Until 2024.11 a task was a tuple of a function and arguments.
    """
    if all(hasattr(candidate, name) for name in ("treename", "filename", "dataset")):
        return candidate
    parts = candidate if isinstance(candidate, tuple) else getattr(candidate, "args", None)
    if depth == 0 or not isinstance(parts, (tuple, list)):
        return None
    found = (find_work_item(part, depth - 1) for part in parts[:2])
    return next((item for item in found if item is not None), None)


def usermeta_of(item: Any, seen: dict[int, Any]) -> Any:
    """Give the user's metadata of a work item, bounded; `seen` is what was made before."""
    usermeta = getattr(item, "usermeta", None)
    if id(usermeta) not in seen:
        seen[id(usermeta)] = _bounded(usermeta)
    return seen[id(usermeta)]


def _bounded(usermeta: Any) -> Any:
    if usermeta is None or (isinstance(usermeta, dict) and not usermeta):
        return None
    text = str(usermeta)
    return usermeta if len(text) <= MAX_USERMETA_LENGTH else text[:MAX_USERMETA_LENGTH] + "…"
