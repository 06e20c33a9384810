"""Names of traces: suffixes of their files, and URLs.

A URL can contain credentials: a user and password, or a signature or token in its query. None
of them may be shown or kept, so everything but the driver uses
:func:`~roast_schemas.urls.without_secrets`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from roast_analyze.errors import NotATrace, TraceError
from roast_schemas.urls import without_secrets

#: Suffixes of the files of traces, which a folder is searched for.
SUFFIXES: Final = (".jsonl", ".jsonl.zst", ".jsonl.gz")

#: Suffix of the recorder's notes about traces that it could not write, which lie beside traces.
NOTE_SUFFIX: Final = ".not-recorded.json"

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://\S")

#: Characters of a file name that are replaced: those of patterns, shells and other places.
_UNSAFE: Final = re.compile(r"[^\w.+=@-]")

#: Longest name of a file of a copy, in bytes. File systems allow 255.
_NAME_BYTES: Final = 120


def is_url(name: object) -> bool:
    """Return whether the name of a trace is a URL rather than a path."""
    return isinstance(name, str) and _URL.match(name) is not None


def scheme_of(url: str) -> str:
    """Return what precedes ``://``, in lower case."""
    return url.partition("://")[0].lower()


def local_path(url: str) -> Path:
    """Return the path of a ``file://`` URL; raise NotATrace if it names another host."""
    host, _, path = url.partition("://")[2].partition("/")
    if host not in ("", "localhost"):
        raise NotATrace(f"{url!r} is on the host {host!r}: use file:///PATH")
    return Path(unquote(f"/{path}"))


def file_name(url: str) -> str:
    """Return the last part of the path of a URL as a name that is safe for a local file.

    Different parts have different names. A URL without a path is named after its host.
    """
    place = without_secrets(url).removesuffix("?…").rstrip("/")
    return safe_name(unquote(place.rpartition("/")[2]))


def safe_name(name: str) -> str:
    """Return a name that is safe for a local file, and differs if the names differ."""
    suffix = next((suffix for suffix in reversed(SUFFIXES) if name.endswith(suffix)), "")
    stem = name.removesuffix(suffix)
    safe = _UNSAFE.sub("_", stem).lstrip(".-")
    safe = safe.encode()[:_NAME_BYTES].decode(errors="ignore")
    if safe != stem or not stem:
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
        safe = f"{safe or 'trace'}-{digest}"
    return f"{safe}{suffix}"


@contextmanager
def names_replaced(names: Mapping[str, str]) -> Iterator[None]:
    """Replace names in the messages of errors of the block, as those of temporary files."""
    try:
        yield
    except TraceError as error:
        message = str(error)
        for name, shown in names.items():
            message = message.replace(name, shown)
        error.args = (message,)
        raise
