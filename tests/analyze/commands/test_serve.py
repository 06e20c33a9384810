"""``roast-analyze serve``: a real server on this machine, asked over HTTP."""

import json
import os
import re
import signal
import socket
import time
from contextlib import suppress

import psutil
import pytest

from roast_analyze import Store
from served import serving

HOSTILE = "<img src=x onerror=alert(1)>\"'`{{7*7}}\u202e.py"
#: States of runs that were read, or cannot be.
FINAL = ("ended", "cut off", "unreadable")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, lines, task, run, worker):
    """A folder with runs, with what is none, and with links that lead out of it."""
    folder = tmp_path_factory.mktemp("runs")
    outside = tmp_path_factory.mktemp("outside")
    program = {"kind": "environment", "t": 0.0, "section": "client", "name": "program"}
    good = [worker("w1"), task("fit-1"), *run("fit-1", 1.0, 9.0)]
    failed = [worker("w1"), task("fit-1"), *run("fit-1", 1.0, 9.0, outcome="erred")]

    def write(place: str, *records, stop: int | None = None, **more):
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        found = lines(*records, **{"trace_id": place, **more}).splitlines(keepends=True)
        path.write_bytes(b"".join(found[:stop]))
        os.utime(path, (time.time() - 3600,) * 2)

    write("good.jsonl", *good, {**program, "value": "fit.py"})
    write("deep/er/killed.jsonl", *failed, stop=-1)  # without its trailer
    write(f"{HOSTILE.replace('/', '')}.jsonl", *good, {**program, "value": HOSTILE})
    for segment in (1, 2):
        write(f"segments/00000{segment}.jsonl", *good, segment=segment, trace_id="segments")
    (folder / "damaged.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfdnothing of the kind")
    os.utime(folder / "damaged.jsonl.zst", (time.time() - 3600,) * 2)
    (folder / "others.jsonl").write_text('{"name": "of another program"}\n')
    secret = outside / "secret.jsonl"
    secret.write_bytes(lines(*good, trace_id="secret"))
    (folder / "link.jsonl").symlink_to(secret)
    (folder / "linked").symlink_to(outside)
    (folder / ".hidden.jsonl").write_bytes(lines(*good, trace_id="hidden"))
    return folder


@pytest.fixture(scope="module")
def server(folder):
    with serving(folder) as server:
        server.wait_for(is_read)
        yield server


def is_read(rows: dict) -> bool:
    return bool(rows) and {row["state"] for row in rows.values()} <= {*FINAL}


def test_the_list(server):
    rows = server.rows()
    hostile = next(place for place in rows if place.startswith("<img"))
    assert {place: row["state"] for place, row in rows.items()} == {
        "good.jsonl": "ended",
        "deep/er/killed.jsonl": "cut off",
        "segments": "ended",
        "damaged.jsonl.zst": "unreadable",
        hostile: "ended",
    }
    good, killed = rows["good.jsonl"], rows["deep/er/killed.jsonl"]
    assert (good["run"], good["tasks"], good["failures"]) == ("fit.py", "1", "0")
    assert (good["workers"], good["start"]) == ("1", "1970-01-01 00:00")
    assert good["wall"].replace("\N{NO-BREAK SPACE}", " ") == "1 min 40 s"
    assert (killed["run"], killed["failures"]) == ("killed", "1")
    assert rows["damaged.jsonl.zst"]["page"] is None
    # Names of others are visible text. The page makes no markup of it.
    assert rows[hostile]["run"] == HOSTILE.replace("\u202e", "⟨U+202E⟩")
    assert "\u202e" not in server.ask("/runs.json")[2]


def test_only_changes_are_sent(server):
    version = server.json("/runs.json?since=0")["version"]
    assert server.json(f"/runs.json?since={version}")["rows"] == []
    assert len(server.json(f"/runs.json?since={version - 1}")["rows"]) == 1
    for odd in ("-1", "x", "%D9%A3", "1e9", ""):
        assert len(server.json(f"/runs.json?since={odd}")["rows"]) == 5


FOREIGN = "http://evil.example"


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"Authorization": None}, 403),
        ({"Authorization": "token wrong"}, 403),
        ({"Authorization": "token "}, 403),
        ({}, 200),
        ({"Host": "localhost:8899"}, 200),  # a forwarded port
        # DNS rebinding: the name belongs to somebody else.
        ({"Authorization": None, "Host": "evil.example"}, 403),
        ({"Authorization": None, "Host": "127.0.0.1.evil.example"}, 403),
        ({"Authorization": None, "Host": "[::1"}, 403),
        ({"Host": "hub.example"}, 200),  # a proxy, which has the token
        ({"Origin": FOREIGN}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"}, 403),
        ({"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors"}, 403),
        ({"Sec_Fetch_Site": "same-origin", "Sec_Fetch_Mode": "cors"}, 200),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}, 200),
    ],
)
def test_who_is_answered(server, fields, status):
    good = server.rows()["good.jsonl"]
    for path in ("/", "/runs.json", f"/{good['page']}", "/nothing"):
        answer = server.ask(path, **fields)[0]
        assert answer == (404 if (status, path) == (200, "/nothing") else status), path


def test_the_token_moves_into_a_cookie(server):
    own = {"Host": f"127.0.0.1:{server.port}", "Authorization": None}
    status, header, page = server.ask(f"/?token={server.token}", **own)
    cookie, *attributes = header["Set-Cookie"].split("; ")
    # Without a path: behind a proxy, the server is in a folder.
    assert (status, sorted(attributes)) == (200, ["HttpOnly", "SameSite=Strict"])
    assert server.token not in page
    assert server.ask("/runs.json", Cookie=cookie, **own)[0] == 200
    assert server.ask("/runs.json", Cookie=f"{cookie}x", **own)[0] == 403
    foreign = {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "no-cors"}
    assert server.ask("/runs.json", Cookie=cookie, **foreign, **own)[0] == 403


def test_pages_ask_nobody_else(server):
    for path in ("/", "/report-0123456789abcdef"):
        _, header, page = server.ask(path)
        policy = header["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert "connect-src 'self'" in policy
        # Relative addresses alone work behind a proxy.
        assert not re.findall(r'(?:href|src)="(?:https?:)?/', page)
    _, header, _ = server.ask(f"/{server.rows()['good.jsonl']['page']}")
    assert header["Referrer-Policy"] == "no-referrer"


def test_nothing_else_is_served(server):
    for path in (
        "/good.jsonl", "/../outside/secret.jsonl", "/%2e%2e/secret.jsonl", "//etc/passwd",
        "/report-good", "/report-0123456789abcdef", "/report-../../etc/passwd", "/live-x",
    ):  # fmt: skip
        status, _, text = server.ask(path)
        assert (status, "root:x:" in text) == (404, False), path
    page = server.rows()["good.jsonl"]["page"]
    for stamp in ("../../../../etc/passwd", "%2e%2e%2f%00", "0123456789abcdef", "x" * 16):
        assert "root:x:" not in server.ask(f"/{page}?stamp={stamp}")[2]
    for method in ("POST", "PUT", "DELETE"):
        assert server.ask("/runs.json", method)[0] == 405


@pytest.mark.exhaustive
def test_a_report_is_written_once(server):
    page = server.rows()["good.jsonl"]["page"]
    report = server.report(page)
    assert '<a class="brand" href="./">roast: all runs</a>' in report
    assert "<h1><bdi>fit.py</bdi></h1>" in report
    status, header, _ = server.ask(f"/{page}")
    policy = header["Content-Security-Policy"]
    assert (status, "connect-src 'none'" in policy) == (200, True)
    assert server.ask(f"/{page}", If_None_Match=header["Etag"])[0] == 304


def test_names_in_a_report_are_no_markup(server):
    [row] = [row for place, row in server.rows().items() if place.startswith("<img")]
    report = server.report(row["page"])
    assert "<img src=x" not in report
    assert "&lt;img src=x" in report


def test_a_file_that_becomes_a_link_is_not_opened(tmp_path, write_trace, task):
    secret = write_trace(task("secret-1"), name="outside/secret.jsonl")
    path = write_trace(task("a-1"), name="runs/a.jsonl")
    with serving(tmp_path / "runs") as server:
        page = server.wait_for(is_read)["a.jsonl"]["page"]
        server.process.send_signal(signal.SIGSTOP)  # it does not look before it is asked
        path.unlink()
        path.symlink_to(secret)
        server.process.send_signal(signal.SIGCONT)
        with suppress(AssertionError):
            assert "secret-1" not in server.report(page)
        server.wait_for(lambda rows: not rows)
        assert server.ask(f"/{page}")[0] == 404


@pytest.mark.exhaustive
def test_a_run_from_its_begin_to_its_report(tmp_path, lines, task, run, worker):
    records = [worker("w1"), task("a-1"), task("a-2"), *run("a-1", 0.0, 5.0)]
    *whole, trailer = lines(*records).splitlines(keepends=True)
    path = tmp_path / "run.jsonl"
    with serving(tmp_path) as server:
        answer = server.json("/runs.json")
        assert (answer["rows"], answer["hint"][:13]) == ([], "No trace yet.")

        path.write_bytes(b"".join(whole))
        row = server.wait_for(lambda rows: rows and rows["run.jsonl"]["state"] == "live")
        row = row["run.jsonl"]
        assert (row["tasks"], row["page"]) == ("1 of 2", f"live-{row['id']}")
        assert row["cells"]["tasks"]["share"] == 0.5
        live = server.json(f"/{row['page']}.json")
        assert dict(live["facts"])["Tasks"].startswith("1 of 2 done")
        [amounts] = live["tables"]
        assert (amounts["name"], amounts["rows"][0]["cells"][:3]) == ("prefix", ["a", "1", "2"])
        assert "<dt>Tasks</dt><dd><b>2</b>" in server.report(f"report-{row['id']}")

        odd = {**task("b-1"), "prefix": HOSTILE}
        with path.open("ab") as file:
            file.write(json.dumps(odd).encode() + b"\n")
        server.wait_for(lambda rows: rows["run.jsonl"]["tasks"] == "1 of 3")
        [amounts] = server.json(f"/{row['page']}.json")["tables"]
        assert HOSTILE.replace("\u202e", "⟨U+202E⟩") in amounts["rows"][1]["cells"]
        with path.open("ab") as file:
            file.write(trailer)
        row = server.wait_for(lambda rows: rows["run.jsonl"]["state"] == "ended")["run.jsonl"]
        assert row["page"] == f"report-{row['id']}"
        assert not server.json(f"/live-{row['id']}.json")["is_live"]
        assert "<dt>Tasks</dt><dd><b>3</b>" in server.report(row["page"])

        path.unlink()
        server.wait_for(lambda rows: not rows)
        assert row["id"] in server.json("/runs.json")["removed"]


@pytest.mark.exhaustive
def test_a_process_that_is_killed_is_replaced(tmp_path, write_trace, task):
    write_trace(task("a-1"), name="runs/a.jsonl")
    with serving(tmp_path / "runs") as server:
        page = server.wait_for(is_read)["a.jsonl"]["page"]
        server.ask(f"/{page}")  # begins a report
        state = server.json(f"/{page}.json")
        while not (state["error"] or state["is_done"]):
            for child in psutil.Process(server.process.pid).children():
                with suppress(psutil.Error):
                    if "spawn_main" in " ".join(child.cmdline()):
                        child.kill()
            state = server.json(f"/{page}.json")
        assert state["error"] == "the process that read the trace ended: Killed"
        status, _, text = server.ask(f"/{page}")
        assert (status, state["error"] in text) == (200, True)
        assert "<dt>Tasks</dt><dd><b>1</b>" in server.report(page)


@pytest.mark.exhaustive
def test_it_ends_with_its_processes(tmp_path, write_trace, task):
    write_trace(task("a-1"), name="runs/a.jsonl")
    with serving(tmp_path / "runs") as server:
        page = server.wait_for(is_read)["a.jsonl"]["page"]
        server.ask(f"/{page}")  # the report is being written
        children = psutil.Process(server.process.pid).children(recursive=True)
        assert children
    assert not psutil.wait_procs(children, timeout=10)[1]


@pytest.mark.exhaustive
def test_a_store(tmp_path, write_traces, task, run, worker):
    paths = write_traces([worker("w1"), task("a-1"), *run("a-1", 1.0, 2.0)], [task("b-1")])
    store = tmp_path / "store"
    Store(store).add(paths[:1])
    with serving(store) as server:
        [row] = server.wait_for(is_read).values()
        assert (row["run"], row["cells"]["run"]["below"]) == ("0", "T0")
        assert (row["tasks"], row["state"], row["workers"]) == ("1", "ended", "1")
        assert "<dt>Tasks</dt><dd><b>1</b>" in server.report(row["page"])


@pytest.mark.exhaustive
def test_the_cache_is_not_used(tmp_path, write_trace, task, own_cache):
    write_trace(task("a-1"), name="runs/a.jsonl")
    before = {*own_cache.rglob("*")}
    with serving(tmp_path / "runs", "--no-cache") as server:
        server.report(server.wait_for(is_read)["a.jsonl"]["page"])
    assert {*own_cache.rglob("*")} == before


@pytest.mark.parametrize("name", ["nowhere", "trace.jsonl"])
def test_what_is_no_folder(analyze, write_trace, monkeypatch, tmp_path, name):
    write_trace()
    monkeypatch.chdir(tmp_path)
    code, out, err = analyze("serve", name)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith(f"roast-analyze: '{name}' ")


def test_a_port_that_is_in_use(analyze, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = analyze("serve", tmp_path, "--port", port)
    assert (code, out) == (2, "")
    assert err == (
        f"roast-analyze: cannot listen on port {port}: Address already in use; "
        "use another --port, or leave it out for a free one\n"
    )
    for odd in ("x", "-1", "65536"):
        code, _, err = analyze("serve", tmp_path, f"--port={odd}")
        assert (code, f"invalid port {odd!r}".replace("'65536'", "65536") in err) == (2, True)


def test_the_browser_gets_no_token_in_its_arguments(tmp_path):
    """Other users of a machine can see arguments of programs."""
    note = tmp_path / "note"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {note}\ncat "${{1#file://}}" >> {note}\n')
    browser.chmod(0o700)
    environment = {**os.environ, "BROWSER": f"{browser} %s"}
    runs = tmp_path / "runs"
    runs.mkdir()
    with serving(runs, "--open", env=environment) as server:
        until = time.monotonic() + 30
        while not (note.exists() and "refresh" in note.read_text()):
            assert time.monotonic() < until
            time.sleep(0.05)
        argument, page = note.read_text().splitlines()
    assert argument.startswith("file://")
    assert f"?token={server.token}" in page


def test_only_this_machine_is_listened_on(server):
    listening = [
        it.laddr.ip
        for it in psutil.Process(server.process.pid).net_connections("tcp")
        if it.status == psutil.CONN_LISTEN
    ]
    assert listening == ["127.0.0.1"]
