"""A process of ``roast-analyze serve``, and requests to it."""

import http.client
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

#: The printed address: port and token.
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)")

#: Traces are read with low priority, so that other tests come first.
SECONDS = 150.0


class Server:
    """A server, until it is interrupted."""

    def __init__(self, *words: object, **options) -> None:
        command = [sys.executable, "-m", "roast_analyze", "serve", *map(str, words)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, **pipes, **options)
        printed = self.process.stdout.readline()
        port, self.token = ADDRESS.search(printed).groups()
        self.port = int(port)
        self.address = f"http://127.0.0.1:{port}/?token={self.token}"

    def ask(
        self, path: str, method: str = "GET", **fields: str
    ) -> tuple[int, dict[str, str], str]:
        """Return status, header and content of an answer; a field that is None is left out."""
        own = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"token {self.token}"}
        fields = own | {name.replace("_", "-"): value for name, value in fields.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        # Not the client's own idea of an address.
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in fields.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, dict(answer.getheaders()), text

    def json(self, path: str) -> dict:
        status, _, text = self.ask(path)
        assert status == 200, text
        return json.loads(text)

    def rows(self) -> dict[str, dict]:
        """Return the rows of the list: texts by column, and what stands below, by place."""
        names = ("run", "user", "start", "wall", "state", "tasks", "failures", "workers")
        found = {}
        for row in self.json("/runs.json?since=0")["rows"]:
            cells = dict(zip((*names, "finding"), row["cells"], strict=True))
            texts = {name: cell["text"] for name, cell in cells.items()}
            place = cells["run"]["below"] or texts["run"]
            found[place] = {**texts, "page": row["page"], "id": row["id"], "cells": cells}
        return found

    def wait_for(self, is_so: Callable[[dict[str, dict]], object]) -> dict[str, dict]:
        """Return the rows as soon as a condition holds."""
        until = time.monotonic() + SECONDS
        while not is_so(rows := self.rows()):
            assert time.monotonic() < until, rows
            time.sleep(0.05)
        return rows

    def report(self, page: str) -> str:
        """Return the report of a run, after the wait for it."""
        until = time.monotonic() + SECONDS
        status, _, text = self.ask(f"/{page}")
        while 'id="waiting"' in text:
            state = self.json(f"/{page}.json")
            if state["is_done"]:
                assert not state["error"], state
                status, _, text = self.ask(f"/{state['report']}")
                break
            assert time.monotonic() < until, state
            time.sleep(0.05)
        assert status == 200, text
        return text

    def end(self) -> tuple[int, str]:
        """Interrupt the server; return its exit code and what it printed on stderr."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, errors


@contextmanager
def serving(folder: Path | str, *words: object, **options):
    """Serve a folder or store; the server must end cleanly and print no error."""
    server = Server(folder, *words, **options)
    try:
        yield server
        code, errors = server.end()
        assert (code, errors) == (0, ""), f"exit code {code}: {errors}"
    finally:
        server.process.kill()
        server.process.communicate()
