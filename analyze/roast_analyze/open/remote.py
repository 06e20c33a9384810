"""Traces at URLs: a copy is kept in the cache, and renewed when the trace has changed.

The header of a trace is read before its records, and a growing one is compared with what was
read before, so a file is first downloaded, once and in order. An entry of the cache is a folder
with ``files`` and a ``manifest.json``: the URL, without credentials, and the size and version
of each file. The copy is read as any trace; in particular, queries cannot reach the network.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import shutil
import tempfile
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from roast_analyze.errors import CacheNotUsed
from roast_analyze.open.cache import (
    MANIFEST,
    cache_folder,
    draft_path,
    evict,
    make_private,
    remove_abandoned,
    unfinished,
)
from roast_analyze.open.drivers import Place
from roast_analyze.open.names import (
    SUFFIXES,
    file_name,
    is_url,
    local_path,
    names_replaced,
    safe_name,
    scheme_of,
)
from roast_schemas.urls import without_secrets

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from roast_analyze.open.drivers import RemoteFile

#: Folder of the files within an entry.
_FILES: Final = "files"

#: Schemes of object stores with traces, or stores of runs; and of those that Delta Lake reads,
#: but none of our drivers.
_OBJECT_STORES: Final = ("gs", "s3")
_ONLY_STORES: Final = ("abfs", "abfss", "adl", "az", "azure", "hdfs", "lakefs", "s3a")


def _no_listener(_stage: str, _share: float) -> None:
    """Report no progress."""


@contextmanager
def at_hand(
    names: Sequence[str | os.PathLike[str]],
    *,
    cache: bool = True,
    listener: Callable[[str, float], None] = _no_listener,
) -> Iterator[tuple[Path, ...]]:
    """Yield the paths of traces, which are those of copies for URLs.

    Errors in the block name the URLs instead of the copies. Without the cache, the copies are
    removed after the block.
    """
    paths = [path_of(name, cache=cache, listener=listener) for name in names]
    try:
        with names_replaced({str(path): shown_name(path) for path in paths}):
            yield tuple(paths)
    finally:
        for name, path in zip(names, paths, strict=True):
            if not cache and is_url(name) and is_of_url(path):
                shutil.rmtree(path.parent.parent, ignore_errors=True)


def path_of(
    name: str | os.PathLike[str],
    *,
    cache: bool = True,
    listener: Callable[[str, float], None] = _no_listener,
) -> Path:
    """Return the path of a trace, which is that of a copy for a URL.

    The copy is renewed if the trace has changed. Without the cache, it is removed at exit.
    """
    if not (isinstance(name, str) and is_url(name)):
        return Path(name)
    if scheme_of(name) == "file":
        return local_path(name)
    folder = _entry(name) if cache else None
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="roast-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return _renew(name, folder, listener)


def is_store(url: str) -> bool:
    """Return whether a URL is that of a store of runs rather than of a trace."""
    scheme = scheme_of(url)
    if scheme == "file":
        return (local_path(url) / "runs" / "_delta_log").is_dir()
    if scheme not in _OBJECT_STORES or url.endswith(SUFFIXES):
        return scheme in _ONLY_STORES
    return Place(url).has_folder("runs/_delta_log")


def shown_name(path: Path) -> str:
    """Return how to name a trace or a segment: the URL, without secrets, or else the path."""
    for copy in (path, path.parent):
        if copy.parent.name == _FILES and (url := _manifest(copy.parent.parent).get("url")):
            return f"{url}{str(path)[len(str(copy)) :]}"
    return str(path)


def is_of_url(path: Path) -> bool:
    """Return whether a path is that of a copy of a trace at a URL."""
    return shown_name(path) != str(path)


def _entry(url: str) -> Path | None:
    """Return the folder of a URL in the cache, or None with a warning if it is not writable."""
    # A digest that cannot be reversed. A URL that is signed again has another entry.
    digest = hashlib.sha256(url.encode(errors="surrogatepass")).hexdigest()
    folder = cache_folder() / digest[:32]
    try:
        make_private(folder / _FILES)
        remove_abandoned(folder)
    except OSError as error:
        warnings.warn(
            f"cannot use the cache {str(folder.parent)!r} ({error.strerror}); "
            "reading without it",
            CacheNotUsed,
            stacklevel=2,
        )
        return None
    return folder


def _renew(url: str, folder: Path, listener: Callable[[str, float], None]) -> Path:
    """Download what has changed into an entry; return the path of the trace in it."""
    place = Place(url)
    is_folder, files = place.files()
    trace = folder / _FILES / file_name(url)
    if trace.exists() and trace.is_dir() != is_folder:
        _remove(trace)
    make_private(trace if is_folder else trace.parent)
    targets = {trace / safe_name(f.name) if is_folder else trace: f for f in files}
    for path in trace.iterdir() if is_folder else ():
        if path not in targets:  # it is no longer at the URL
            _remove(path)
    known = _manifest(folder).get("files", {})
    states: dict[str, list[Any]] = {}
    total = max(1, sum(file.nbytes or 0 for file in files))
    finished = 0
    for target, file in targets.items():
        # If the server reports nothing that changes with the content, the file is read again.
        if not file.version or _state(target, file) != known.get(target.name):

            def report(nbytes: int, finished: int = finished) -> None:
                listener("downloading", min(1.0, (finished + nbytes) / total))

            with unfinished(folder) as draft:
                if not (target.exists() and place.append(file, target, draft, report)):
                    place.download(file, draft, report)
                draft.replace(target)
            evict(keep=folder)
        states[target.name] = _state(target, file)
        finished += file.nbytes or 0
        # After each file, so that an interrupted command need not be repeated from the start.
        _write_manifest(folder, {"url": without_secrets(url), "files": {**known, **states}})
    return trace


def _state(target: Path, file: RemoteFile) -> list[Any]:
    """Return what identifies the content of a file at its URL, and of its copy."""
    # Another process can renew the same copy at the same time.
    stat = target.stat() if target.exists() else None
    stamp = [stat.st_ino, stat.st_size, stat.st_mtime_ns] if stat else []
    return [file.nbytes, *file.version, *stamp]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _manifest(folder: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        found = json.loads((folder / MANIFEST).read_bytes())
        if isinstance(found, dict) and isinstance(found.get("files"), dict):
            return found
    return {}


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    draft = draft_path(folder)
    draft.write_text(json.dumps(manifest), encoding="utf-8")
    draft.replace(folder / MANIFEST)
