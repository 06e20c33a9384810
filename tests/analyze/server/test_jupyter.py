"""The server behind jupyter-server-proxy, in a real Jupyter server."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

pytest.importorskip("jupyter_server_proxy")

TOKEN = "token-of-jupyter"


@pytest.fixture
def jupyter(tmp_path):
    """Start a Jupyter server in a folder; return a function that asks for a path."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = {
        "ServerApp.port": port, "ServerApp.token": TOKEN, "ServerApp.allow_root": True,
        "ServerApp.open_browser": False, "ServerApp.base_url": "/user/alice/",
    }  # fmt: skip
    words = [f"--{name}={value}" for name, value in options.items()]
    home = {name: str(tmp_path / "home") for name in ("HOME", "JUPYTER_CONFIG_DIR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "jupyter", "server", *words],
        cwd=tmp_path, env={**os.environ, **home}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip

    def ask(path: str, token: str = TOKEN) -> tuple[int, str]:
        address = f"http://127.0.0.1:{port}/user/alice/{path}"
        request = urllib.request.Request(address, headers={"Authorization": f"token {token}"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        try:
            ask("api")
            break
        except urllib.error.URLError:
            time.sleep(0.1)
    yield ask
    process.terminate()
    process.communicate(timeout=60)


@pytest.mark.exhaustive
def test_runs_in_jupyter(jupyter, write_trace, task):
    write_trace(task("a-1"), name="runs/a.jsonl")
    status, page = jupyter("roast/")
    assert (status, "<h1>Runs</h1>" in page) == (200, True)
    until = time.monotonic() + 60
    while not (rows := json.loads(jupyter("roast/runs.json")[1])["rows"]):
        assert time.monotonic() < until
        time.sleep(0.1)
    [row] = rows
    assert row["cells"][0]["below"] == "runs/a.jsonl"
    while 'id="waiting"' in (page := jupyter(f"roast/report-{row['id']}")[1]):
        assert time.monotonic() < until
        time.sleep(0.2)
    # The links work below the address of the user.
    assert '<a class="brand" href="./">' in page
    assert not re.findall(r'(?:href|src)="/', page)
    # Jupyter checks who asks.
    assert "runs/a.jsonl" not in jupyter("roast/runs.json", token="wrong")[1]
