"""Files at a URL, which the drivers of fsspec read: what is there, and reading it in order.

A driver is a library of an extra of roast-trace. Whatever it raises becomes a
:class:`~roast_analyze.errors.TraceError` of one line, made of classes and codes: messages of
drivers contain addresses with signatures and tokens.
"""

from __future__ import annotations

import errno
import logging
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from roast_analyze.errors import MissingExtra, NoRoom, NotATrace, TraceError, TraceNotFound
from roast_analyze.open.growing import FRAME_END
from roast_analyze.open.names import SUFFIXES, scheme_of
from roast_schemas.documentation import docs
from roast_schemas.urls import without_secrets

if TYPE_CHECKING:
    import fsspec

#: Time to connect, and time without an answer. A whole download can take any time.
_CONNECT_SECONDS: Final = 10
_SILENT_SECONDS: Final = 60

#: Bytes that are read at once of the end of a file, and by XRootD, whose driver waits for the
#: server too often by default.
_BLOCK_BYTES: Final = 2**22

#: Bytes before the end of a copy that are compared with the file: they are the same if records
#: were appended, and others if it was replaced. A smaller file is downloaded whole.
_COMPARED_BYTES: Final = 2**16

#: Fields with which drivers name the state of a file: its ETag or checksum, and the time of its
#: last change.
_VERSION_FIELDS: Final = (
    "ETag", "etag", "generation", "Content-MD5", "Last-Modified", "LastModified", "mtime",
)  # fmt: skip

#: Beginnings of messages of XRootD's client.
_XROOTD: Final = (
    "Auth failed", "Connection error", "Operation expired", "Socket timeout", "Invalid address",
    "TLS error",
)  # fmt: skip


@dataclass(frozen=True)
class Driver:
    """A library that reads URLs of a scheme."""

    library: str
    extra: str  # of roast-trace, which installs it
    credentials: str  # where it finds them
    options: Callable[[], Mapping[str, Any]] = dict  # of its file system
    #: Options of a download, which by default reads a file once and in order.
    reading: Mapping[str, Any] = field(default_factory=dict)


def _http_options() -> Mapping[str, Any]:
    import aiohttp

    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=_CONNECT_SECONDS, sock_read=_SILENT_SECONDS
    )
    # With the proxies of the environment, and the passwords of ~/.netrc.
    return {"client_kwargs": {"timeout": timeout, "trust_env": True}}


def _s3_options() -> Mapping[str, Any]:
    return {
        "config_kwargs": {
            "connect_timeout": _CONNECT_SECONDS,
            "read_timeout": _SILENT_SECONDS,
            "retries": {"max_attempts": 2},
        }
    }


def _xrootd_options() -> Mapping[str, Any]:
    from XRootD import client

    # By default, a server that refuses connections is tried for ten minutes.
    client.EnvPutInt("ConnectionWindow", _CONNECT_SECONDS)
    client.EnvPutInt("ConnectionRetry", 1)
    return {"timeout": _SILENT_SECONDS, "locate_all_sources": False}


_HTTP: Final = Driver(
    "aiohttp", "http", "a password in ~/.netrc, or a signed URL", _http_options
)

#: Drivers by the schemes of their URLs.
DRIVERS: Final = {
    "s3": Driver(
        "s3fs",
        "s3",
        "AWS_PROFILE, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or FSSPEC_S3_ANON=1",
        _s3_options,
        {"max_concurrency": 1},
    ),
    "gs": Driver(
        "gcsfs",
        "gs",
        "GOOGLE_APPLICATION_CREDENTIALS, or gcloud auth application-default login",
    ),
    "http": _HTTP,
    "https": _HTTP,
    "root": Driver(
        "fsspec-xrootd",
        "root",
        "X509_USER_PROXY, or BEARER_TOKEN_FILE",
        _xrootd_options,
        {"chunk_size": _BLOCK_BYTES},
    ),
}

# Drivers log what they also raise, and Python prints what no handler receives.
for _driver in DRIVERS.values():
    logging.getLogger(_driver.library).addHandler(logging.NullHandler())


class RemoteFile(NamedTuple):
    """A file at a URL."""

    address: str  # for the driver
    name: str  # without folders, as the server names it
    nbytes: int | None  # None if the server does not report it
    #: What differs if the content does; empty if the server reports nothing like that.
    version: tuple[str, ...]


class Place:
    """A URL, and the driver that reads it. All errors are instances of TraceError."""

    def __init__(self, url: str) -> None:
        driver = DRIVERS.get(scheme_of(url))
        if driver is None:
            raise NotATrace(
                f"cannot read {without_secrets(url)!r}: use a path, or a URL with "
                f"{', '.join(f'{scheme}://' for scheme in DRIVERS)}"
            )
        self._url = f"{scheme_of(url)}://{url.partition('://')[2]}"
        self._driver = driver

    def files(self) -> tuple[bool, list[RemoteFile]]:
        """Return whether the URL is that of a folder, and the file or the segments there."""
        with self._errors():
            self._system.invalidate_cache()
            if self._driver is _HTTP:
                return self._web_files()
            info = self._system.info(self._path)
            if info["type"] == "directory":
                return True, self._segments(self._system.ls(self._path, detail=True))
            return False, [_as_file(self._path, info)]

    def has_folder(self, name: str) -> bool:
        """Return whether a folder at the URL contains another folder."""
        with self._errors():
            return bool(self._system.isdir(f"{self._path.rstrip('/')}/{name}"))

    def download(self, file: RemoteFile, target: Path, report: Callable[[int], None]) -> None:
        """Read a file once, from front to back; `report` is called with the bytes so far."""
        with self._errors(file.address):
            from fsspec.callbacks import Callback

            callback = Callback(hooks={"report": lambda _size, value, **_: report(value)})
            self._system.get_file(
                file.address, str(target), callback=callback, **self._driver.reading
            )
            nbytes = target.stat().st_size
            if file.nbytes is not None and nbytes < file.nbytes:
                raise ConnectionResetError(errno.ECONNRESET, "cut")

    def append(
        self, file: RemoteFile, known: Path, copy: Path, report: Callable[[int], None]
    ) -> bool:
        """Copy an earlier copy of a file, and append what the file has more; return success.

        Without success, as with a server that has no range requests, the file is to be
        downloaded.
        """
        nbytes = known.stat().st_size
        start = nbytes - _COMPARED_BYTES
        if start < 0 or file.nbytes is None or file.nbytes <= nbytes:
            return False
        options = {"block_size": _BLOCK_BYTES, "cache_type": "readahead"}
        # What fails here fails again in the download, which raises it.
        with suppress(Exception), self._system.open(file.address, "rb", **options) as source:
            source.seek(start)
            data = source.read(_BLOCK_BYTES)
            with known.open("rb") as end:
                end.seek(start)
                # The next append overwrites the end of a zstd frame.
                if not data.startswith(end.read().removesuffix(FRAME_END)):
                    return False
            shutil.copyfile(known, copy)
            with copy.open("r+b") as target:
                target.seek(start)
                while data:
                    target.write(data)
                    report(target.tell())
                    data = source.read(_BLOCK_BYTES)
                return target.tell() >= file.nbytes
        return False

    @cached_property
    def _opened(self) -> tuple[fsspec.AbstractFileSystem, str]:
        import fsspec

        # Not by `url_to_fs`, for which `::` separates several URLs.
        kind = fsspec.get_filesystem_class(scheme_of(self._url))
        options = {**kind._get_kwargs_from_urls(self._url), **self._driver.options()}
        return kind(**options), kind._strip_protocol(self._url)

    @property
    def _system(self) -> fsspec.AbstractFileSystem:
        return self._opened[0]

    @property
    def _path(self) -> str:
        return self._opened[1]

    def _segments(self, infos: list[dict[str, Any]]) -> list[RemoteFile]:
        files = [_as_file(info["name"], info) for info in infos if info["type"] != "directory"]
        found = [file for file in files if _is_segment(file.name)]
        if not found:
            raise NotATrace(
                f"the folder {without_secrets(self._url)!r} contains no trace: segments end in "
                f"{', '.join(SUFFIXES)}"
            )
        return found

    def _web_files(self) -> tuple[bool, list[RemoteFile]]:
        """Return the file at a web server, or the segments to which a page has links."""
        url = self._url
        if not _is_page(url):
            info = self._system.info(url)
            # A server redirects from the name of a folder to that with a slash.
            if info.get("mimetype") != "text/html" or not _is_page(info["url"]):
                return False, [_as_file(url, info)]
            url = info["url"]
        place, mark, query = url.partition("?")
        infos = []
        for link in sorted(self._system.ls(url, detail=False)):
            name = link.removeprefix(f"{url.rstrip('/')}/")
            # Links can lead anywhere, and a quoted name can contain a slash.
            is_beside = "/" not in unquote(name) and not {"?", "#"} & {*name}
            if is_beside and _is_segment(unquote(name)):
                address = f"{place}{name}{mark}{query}"
                with self._errors(address):
                    infos.append({**self._system.info(address), "name": address})
        return True, self._segments(infos)

    @contextmanager
    def _errors(self, address: str = "") -> Iterator[None]:
        """Raise a TraceError in place of any error of the driver in the block.

        It names the URL, or a file at an address in the folder.
        """
        try:
            yield
        except TraceError:
            raise
        except Exception as error:  # noqa: BLE001 - of any library
            # The next attempt finds credentials that were renewed; a client keeps its own.
            if "_opened" in vars(self):
                type(self._system).clear_instance_cache()
            url = address if "://" in address else f"{scheme_of(self._url)}://{address}"
            raise _as_trace_error(url if address else self._url, self._driver, error) from None


def _is_page(url: str) -> bool:
    """Return whether a URL is that of a page of files, by its last character."""
    return urlsplit(url).path.endswith("/")


def _is_segment(name: str) -> bool:
    return name.endswith(SUFFIXES) and not name.startswith(".")


def _as_file(address: str, info: Mapping[str, Any]) -> RemoteFile:
    version = tuple(str(info[name]) for name in _VERSION_FIELDS if info.get(name))
    path = urlsplit(address).path if scheme_of(address) in ("http", "https") else address
    name = path.rstrip("/").rpartition("/")[2]
    return RemoteFile(
        address, unquote(name) if "://" in address else name, info["size"], version
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and those that led to it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _facts(error: Exception) -> str:
    """Return classes and codes of an error and its causes, as words.

    Such as ``PermissionError OSError ClientError status=403``.
    """
    words: list[str] = []
    for cause in _causes(error):
        words += (kind.__name__ for kind in type(cause).__mro__[:-2])
        code = getattr(cause, "status" if hasattr(cause, "status") else "code", None)
        if isinstance(code, int):
            words.append(f"status={code}")
        if isinstance(cause, OSError):
            words.append(f"errno={errno.errorcode.get(cause.errno or 0)}")
        # XRootD has only messages, such as "[ERROR] Server responded with an error: [3011] …".
        words += (f"xrootd={code}" for code in re.findall(r": \[(3\d{3})\]", str(cause)))
        words += (f"xrootd={text}" for text in _XROOTD if f"] {text}" in str(cause))
    return " ".join(words)


#: What words of :func:`_facts` mean, and what to do. The first that is found counts: a driver
#: reports much as a file that is missing.
_REASONS: Final = (
    (r"errno=ENOSPC", "the disk is full: remove files, or set ROAST_CACHE_DIR to another disk"),
    (
        (
            r"\w*Credential\w*|ProfileNotFound|\w*SSO\w*|\w*RefreshError|status=401"
            r"|xrootd=Auth failed"
        ),
        "no valid credentials: use {credentials}",
    ),
    (
        r"PermissionError|status=403|xrootd=3010|errno=EACCES",
        "access is denied: check the permissions, or use {credentials}",
    ),
    (r"errno=ECONNREFUSED", "the connection was refused: check the address and the port"),
    (r"\w*DNS\w*|gaierror|xrootd=Invalid address", "the host is unknown: check the address"),
    (
        r"\w*Certificate\w*|SSLError|ClientConnectorSSLError|xrootd=TLS error",
        "no secure connection: check the address, and the certificate of the server",
    ),
    (r"\w*Redirect\w*", "the server redirects without end, or not to http: use the final URL"),
    (
        r"\w*Timeout\w*|errno=ETIMEDOUT|xrootd=(?:Operation expired|Socket timeout)",
        "the server does not answer in time: try again, or check the address",
    ),
    (
        r"ClientPayloadError|ServerDisconnectedError|ConnectionResetError|\w*Incomplete\w*",
        "the connection was lost: try again",
    ),
    (
        r"\w*Connect(?:ion|or)\w*Error|xrootd=Connection error",
        "no connection: check the address and the port",
    ),
    (
        r"errno=EINVAL|status=400",
        "the server refuses the request as invalid: check the URL, and a versionId in it",
    ),
    (r"status=5\d\d", "the server failed: try again later"),
    (r"ParamValidationError|InvalidURL|ValueError", "the URL is invalid: check it"),
)


def _as_trace_error(url: str, driver: Driver, error: Exception) -> TraceError:
    shown = without_secrets(url)
    if isinstance(error, ImportError):
        return MissingExtra(
            f"reading {shown!r} needs {driver.library}, which is not installed: "
            f"pip install '.[{driver.extra}]' in a clone of roast {docs('how-to/remote')}"
        )
    facts = _facts(error)
    for pattern, reason in _REASONS:
        if re.search(rf"(?<!\S)(?:{pattern})(?!\S)", facts):
            kind = NoRoom if "disk is full" in reason else NotATrace
            return kind(
                f"cannot read {shown!r}: {reason.format(credentials=driver.credentials)} "
                f"{docs('how-to/remote')}"
            )
    if re.search(r"FileNotFoundError|status=(?:404|410)|xrootd=3011", facts):
        return TraceNotFound(
            f"{shown!r} does not exist: name a trace file or a folder of segments"
        )
    return NotATrace(
        f"cannot read {shown!r}: {type(error).__name__} of {driver.library}; check the URL, or "
        f"read a copy on this machine {docs('how-to/remote')}"
    )
