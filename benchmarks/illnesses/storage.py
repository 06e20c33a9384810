"""A file server on loopback with a given latency and speed, and range requests for uproot.

    python storage.py FOLDER HOST LATENCY_SECONDS BYTES_PER_SECOND [FILE]

The speed is shared by all readers of a file. With FILE, only that file is slow; others
have a tenth of the latency and a hundred times the speed. The address is printed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LOCKS: dict[str, threading.Lock] = defaultdict(threading.Lock)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *request, folder: Path, latency: float, speed: float, slow: str | None):
        self.folder, self.latency, self.speed, self.slow = folder, latency, speed, slow
        super().__init__(*request)

    def do_HEAD(self) -> None:
        size = (self.folder / self.path.lstrip("/")).stat().st_size
        self._answer(200, b"", size)

    def do_GET(self) -> None:
        content = (self.folder / self.path.lstrip("/")).read_bytes()
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not found:
            self._answer(200, content, len(content))
            return
        first = int(found[1])
        last = min(int(found[2] or len(content)), len(content) - 1)
        part = content[first : last + 1]
        self._answer(206, part, len(part), f"bytes {first}-{last}/{len(content)}")

    def _answer(self, status: int, body: bytes, size: int, content_range: str = "") -> None:
        is_fast = self.slow is not None and self.slow != Path(self.path).name
        time.sleep(self.latency / 10 if is_fast else self.latency)
        with LOCKS[self.path]:
            time.sleep(len(body) / (self.speed * 100 if is_fast else self.speed))
        self.send_response(status)
        self.send_header("Content-Length", str(size))
        self.send_header("Accept-Ranges", "bytes")
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args) -> None:
        """Disable the log of requests."""


@contextmanager
def served(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    latency_seconds: float = 0.002,
    bytes_per_second: float = 5e8,
    slow_file: str = "",
) -> Iterator[str]:
    """Serve a folder from another process; yield the URL."""
    numbers = [str(latency_seconds), str(bytes_per_second)]
    command = [
        sys.executable,
        __file__,
        str(folder),
        host,
        *numbers,
        *filter(None, [slow_file]),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def main() -> None:
    folder, host, latency, speed, *slow = sys.argv[1:]
    handler = partial(
        Handler,
        folder=Path(folder),
        latency=float(latency),
        speed=float(speed),
        slow=slow[0] if slow else None,
    )
    server = ThreadingHTTPServer((host, 0), handler)
    print(f"http://{host}:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
