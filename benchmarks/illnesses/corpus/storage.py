"""File servers on loopback with given latencies, speeds and faults, and range requests.

``python storage.py FOLDER SERVER`` serves a folder with the fields of `Server` as JSON, and
prints the address.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

#: Bytes of a block of a cache.
BLOCK = 4096


@dataclass(frozen=True)
class Server:
    """A file server."""

    host: int = 1  #: Last number of its address.
    latency: float = 0.002  #: Seconds for each request.
    #: Bytes per second for each file, for all files together, and for each request.
    speed: float = 5e8
    shared_speed: float = 1e10
    pace: float = 1e10
    #: With it, only that file is slow; others have a part of the latency and a hundred times
    #: the speed.
    slow_file: str = ""
    others: float = 0.1  #: Part of the latency that other files than the slow one have.
    opening: float = 0.0  #: Seconds for the first bytes of a file, for each reader.
    slots: int = 200  #: Number of requests, and of first requests, that are answered at a time.
    opening_slots: int = 200
    staging: float = 0.0  #: Seconds for the first request for a file.
    quota: int = 0  #: Number of requests that are answered without the latency.
    pause: float = 0.0  #: Seconds of each 4 seconds in which nothing is answered.
    #: Whether the latency grows with the number of requests at a time, up to ten times.
    thrashing: bool = False
    unlucky: float = 1.0  #: Share of the requests that have the latency.
    #: Seconds for each block of a cache that was not requested before.
    block_seconds: float = 0.0
    #: Share of the ranges, apart from the first bytes, that are refused once (status 503).
    refused: float = 0.0
    #: Whether readers of the slow file are redirected to another path first.
    redirects: bool = False

    def __repr__(self) -> str:
        values = (pair for pair in asdict(self).items() if pair not in DEFAULTS.items())
        return f"Server({', '.join(f'{name}={value!r}' for name, value in values)})"


DEFAULTS = asdict(Server())


class State:
    """What a server remembers of its requests."""

    def __init__(self, server: Server) -> None:
        self.files: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self.link = threading.Lock()
        self.slots = threading.BoundedSemaphore(server.slots)
        self.opening_slots = threading.BoundedSemaphore(server.opening_slots)
        self.blocks: set[tuple[str, int]] = set()
        self.refused: set[tuple[str, int]] = set()
        self.staged: set[str] = set()
        self.requests = self.waiting = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    #: One packet for each answer.
    wbufsize = -1
    disable_nagle_algorithm = True

    def __init__(self, *request: Any, folder: Path, server_facts: Server, state: State) -> None:
        self.folder, self.facts, self.state = folder, server_facts, state
        super().__init__(*request)

    def do_HEAD(self) -> None:
        path = self._path()
        if path:
            self._answer(200, b"", path.stat().st_size)

    def do_GET(self) -> None:
        path = self._path()
        if not path:
            return
        content = path.read_bytes()
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not found:
            self._answer(200, content, len(content))
            return
        first = int(found[1])
        last = min(int(found[2] or len(content)), len(content) - 1)
        if first and self._refuses(path.name, first):
            self.send_error(503)
            return
        self._open_or_fetch(path.name, first, last)
        part = content[first : last + 1]
        self._answer(206, part, len(part), f"bytes {first}-{last}/{len(content)}")

    def _path(self) -> Path | None:
        """Return the requested file, or answer that it is missing or elsewhere."""
        name = self.path.lstrip("/").removeprefix("far/")
        is_away = self.facts.redirects and Path(name).name == self.facts.slow_file
        if is_away and not self.path.startswith("/far/"):
            self.send_response(302)
            self.send_header("Location", f"/far/{name}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        if (self.folder / name).exists():
            return self.folder / name
        self.send_error(404)
        return None

    def _refuses(self, name: str, first: int) -> bool:
        place = (name, first)
        if place in self.state.refused:
            return False
        self.state.refused.add(place)
        return random.Random(repr(place)).random() < self.facts.refused

    def _open_or_fetch(self, name: str, first: int, last: int) -> None:
        if first == 0 and self.facts.opening:
            with self.state.opening_slots:
                time.sleep(self.facts.opening)
        if self.facts.block_seconds:
            wanted = {(name, block) for block in range(first // BLOCK, last // BLOCK + 1)}
            missing = wanted - self.state.blocks
            self.state.blocks |= missing
            time.sleep(self.facts.block_seconds * len(missing))

    def _latency(self) -> float:
        facts, state = self.facts, self.state
        state.requests += 1
        if state.requests <= facts.quota or random.random() >= facts.unlucky:
            return 0.0
        return facts.latency * (min(10, state.waiting**2) if facts.thrashing else 1)

    def _answer(self, status: int, body: bytes, size: int, content_range: str = "") -> None:
        facts, state = self.facts, self.state
        is_fast = bool(facts.slow_file) and facts.slow_file != Path(self.path).name
        with state.files[self.path] if facts.staging else nullcontext():
            if facts.staging and self.path not in state.staged:
                state.staged.add(self.path)
                time.sleep(facts.staging)
        while time.time() % 4 < facts.pause:
            time.sleep(0.05)
        state.waiting += 1
        with state.slots:
            seconds = self._latency()
            time.sleep(seconds * facts.others if is_fast else seconds)
        state.waiting -= 1
        with state.files[self.path]:
            time.sleep(len(body) / (facts.speed * 100 if is_fast else facts.speed))
        with state.link:
            time.sleep(len(body) / facts.shared_speed)
        time.sleep(len(body) / facts.pace)
        self.send_response(status)
        self.send_header("Content-Length", str(size))
        self.send_header("Accept-Ranges", "bytes")
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Disable the log of requests."""


@contextmanager
def served(folder: Path, server: Server) -> Iterator[str]:
    """Serve a folder from another process; yield the URL."""
    command = [sys.executable, __file__, str(folder), json.dumps(asdict(server))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def main() -> None:
    folder, facts = sys.argv[1:]
    server = Server(**json.loads(facts))
    handler = partial(Handler, folder=Path(folder), server_facts=server, state=State(server))
    host = f"127.0.0.{server.host}"
    http_server = ThreadingHTTPServer((host, 0), handler)
    print(f"http://{host}:{http_server.server_port}", flush=True)
    http_server.serve_forever()


if __name__ == "__main__":
    main()
