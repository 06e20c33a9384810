"""Traces at URLs, on real servers: plain HTTP, S3, Google's protocol and XRootD."""

import argparse
import contextlib
import hashlib
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from functools import partial
from pathlib import Path

import pytest

from roast_analyze import Store, Trace, each
from roast_analyze.commands.offered_runs import TraceRuns
from roast_analyze.errors import CacheNotUsed, TraceError
from roast_analyze.open.remote import at_hand, path_of, shown_name
from roast_recorder.writer.trace_file import TraceFile

pytestmark = pytest.mark.usefixtures("own_cache")

COUNT = "SELECT count(*) AS n FROM tasks"


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """Print nothing if a client leaves early."""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of a folder and pages of folders, without range requests; and broken answers."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.server.requests.append(f"HEAD {self.path}")
        self.answer_oddly() or super().do_HEAD()

    def do_GET(self):
        self.server.requests.append(f"GET {self.path}")
        self.answer_oddly() or super().do_GET()

    def answer_oddly(self):
        name, _, rest = self.path.strip("/").partition("/")
        if name.isdecimal():  # /403/t.jsonl
            self.send_response(int(name))
            self.send_header("Content-Length", "0")
        elif name == "to":  # /to/URL
            self.send_response(302)
            self.send_header("Location", urllib.parse.unquote(rest))
            self.send_header("Content-Length", "0")
        elif name == "signed" and self.command == "HEAD":  # a URL that is signed for GET
            self.send_response(403)
            self.send_header("Content-Length", "0")
        elif name == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.close_connection = True
        elif name == "stuck":
            self.server.released.wait(30)
            self.close_connection = True
            return True
        elif name == "ranges" and "Range" in self.headers:
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            whole = (self.server.folder / name / rest).read_bytes()
            data = whole[first : last + 1]
            self.server.requests[-1] += f" {first}-"
            self.send_response(206)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(whole)}")
            self.end_headers()
            self.wfile.write(data)
            return True
        elif name == "links":
            page = self.server.page.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)
            return True
        else:
            return False
        self.end_headers()
        if name == "cut" and self.command == "GET":
            self.wfile.write(b'{"kind":"header"')
        return True

    def log_message(self, *_):
        pass


@pytest.fixture
def web(tmp_path, monkeypatch):
    """A web server of the folder ``web``, with its address and the requests that it got."""
    folder = tmp_path / "web"
    folder.mkdir()
    handler = partial(Handler, directory=str(folder))
    with Server(("127.0.0.1", 0), handler) as server:
        server.folder, server.requests, server.released = folder, [], threading.Event()
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("NETRC", os.devnull)
        yield server
        server.released.set()
        server.shutdown()


@pytest.fixture
def cache(own_cache):
    """Return the files in the cache, except templates, as a list of texts."""
    return lambda: sorted(
        str(path.relative_to(own_cache))
        for path in own_cache.rglob("*")
        if path.is_file() and path.parent.name != "templates"
    )


@pytest.fixture
def segment(lines, task):
    """Return the content of a segment with one task."""
    return lambda number: lines(task(f"a-{number}"), segment=number)


def test_a_trace_at_a_web_server_is_downloaded_once(web, analyze, segment):
    (web.folder / "t.jsonl").write_bytes(segment(1))
    url = f"{web.url}/t.jsonl"

    assert analyze("sql", url, COUNT, "--format", "csv") == (0, "n\n1\n", "")
    assert web.requests == ["HEAD /t.jsonl", "GET /t.jsonl"]
    web.requests.clear()
    code, out, err = analyze("check", url)
    assert (code, out.partition(",")[0], err) == (0, "t.jsonl: complete", "")
    assert web.requests == ["HEAD /t.jsonl"]

    with Trace(url) as trace:
        assert repr(trace) == f"Trace('{url}')"
        assert trace.path.name == "t.jsonl"
        assert trace.rows(COUNT) == [(1,)]


def test_a_trace_that_grows_is_read_to_its_new_end(web, lines, task):
    path, url = web.folder / "t.jsonl", f"{web.url}/t.jsonl"
    whole = lines(*(task(f"a-{n}") for n in range(3)))
    *most, _, _ = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(most))

    with Trace(url) as trace:
        assert trace.rows(COUNT) == [(2,)]
    path.write_bytes(whole)
    with Trace(url) as trace:
        assert trace.rows(COUNT) == [(3,)]
        assert trace.rows("SELECT reason FROM loss") == []


@pytest.fixture
def large(lines, task):
    """Return the content of a trace with tasks whose keys cannot be compressed well."""

    def large(tasks, **header):
        keys = (hashlib.sha256(bytes(n)).hexdigest() for n in range(tasks))
        return lines(*map(task, keys), **header)

    return large


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.zst"])
def test_only_what_was_appended_is_downloaded(web, suffix, large):
    (web.folder / "ranges").mkdir()
    path, url = web.folder / "ranges" / f"t{suffix}", f"{web.url}/ranges/t{suffix}"
    records = large(5_000).splitlines(keepends=True)

    with contextlib.closing(TraceFile(path)) as trace:
        trace.append(b"".join(records[:4_500]))
        early = path_of(url).read_bytes()
        assert early == path.read_bytes()
        trace.append(b"".join(records[4_500:]))  # overwrites the end of the zstd frame
    web.requests.clear()

    assert path_of(url).read_bytes() == path.read_bytes()
    assert [request for request in web.requests if request.startswith("GET")] == [
        f"GET /ranges/t{suffix} {len(early) - 2**16}-"
    ]


@pytest.mark.parametrize("folder", ["ranges", "plain"])
def test_what_was_replaced_by_more_is_downloaded_whole(web, folder, large):
    (web.folder / folder).mkdir()
    path, url = web.folder / folder / "t.jsonl", f"{web.url}/{folder}/t.jsonl"

    path.write_bytes(large(1_000))
    path_of(url)
    path.write_bytes(whole := large(1_500, trace_id="another"))

    assert path_of(url).read_bytes() == whole


def test_a_folder_at_a_web_server(web, segment):
    folder = web.folder / "run"
    folder.mkdir()
    for number in (1, 2):
        (folder / f"{number}.jsonl").write_bytes(segment(number))
    (folder / "notes.txt").write_text("hello")

    for url in (f"{web.url}/run/", f"{web.url}/run"):  # the server redirects to the first
        with Trace(url) as trace:
            assert trace.rows("SELECT key FROM tasks ORDER BY ALL") == [("a-1",), ("a-2",)]
    (folder / "1.jsonl").unlink()
    (folder / "3.jsonl").write_bytes(segment(3))
    web.requests.clear()
    with Trace(f"{web.url}/run/") as trace:
        assert trace.rows("SELECT key FROM tasks ORDER BY ALL") == [("a-2",), ("a-3",)]
    # What has not changed is not downloaded again.
    downloads = [request for request in web.requests if request.startswith("GET")]
    assert downloads == ["GET /run/", "GET /run/3.jsonl"]


def test_a_segment_that_cannot_be_read_is_named(web):
    web.page = '<a href="000001.jsonl.zst">x</a>'

    with pytest.raises(TraceError, match=rf"cannot read '{web.url}/links/000001.jsonl.zst': "):
        path_of(f"{web.url}/links/")


def test_links_to_other_places_are_not_followed(web):
    web.page = """
        <a href="http://127.0.0.1:1/a.jsonl">x</a> <a href="/other/b.jsonl">x</a>
        <a href="../c.jsonl">x</a> <a href="..%2f..%2fd.jsonl">x</a> <a href="sub/e.jsonl">x</a>
        <a href="file:///etc/f.jsonl">x</a> <a href="?g.jsonl">x</a>
    """

    with pytest.raises(TraceError, match="contains no trace: segments end in"):
        Trace(f"{web.url}/links/")
    assert web.requests == ["GET /links/"]


BROKEN = {
    "/404/t.jsonl?s=SECRET": "does not exist: name a trace file or a folder of segments",
    "/401/t.jsonl?s=SECRET": "no valid credentials: use a password in ~/.netrc, or",
    "/403/t.jsonl?s=SECRET": "access is denied: check the permissions, or use a password",
    "/503/t.jsonl?s=SECRET": "the server failed: try again later",
    "/cut/t.jsonl?s=SECRET": "the connection was lost: try again",
    "/to//to/t.jsonl?s=SECRET": "the server redirects without end, or not to http",
    "/to/file%3A%2F%2F%2Fetc%2Fpasswd?s=SECRET": "the server redirects without end, or not to",
    "/to/s3%3A%2F%2Fbucket%2Ft.jsonl?s=SECRET": "the server redirects without end, or not to",
    "/stuck/t.jsonl?s=SECRET": "the server does not answer in time: try again",
}


@pytest.mark.parametrize("path", BROKEN)
def test_a_failure_is_one_line_without_credentials(path, web, cache, analyze, monkeypatch):
    monkeypatch.setattr("roast_analyze.open.drivers._SILENT_SECONDS", 0.5)
    url = f"{web.url.replace('//', '//me:SECRET@')}{path}"
    shown = f"{web.url}{path.partition('?')[0]}?…"

    code, out, err = analyze(url)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert BROKEN[path] in err
    assert f"'{shown}'" in err
    assert "SECRET" not in err
    assert cache() == []


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://127.0.0.1:1/t.jsonl", "the connection was refused: check the address and the"),
        ("https://host.invalid/t.jsonl", "the host is unknown: check the address"),
        ("http://[bad/t.jsonl", "the URL is invalid: check it"),
        ("memory://t.jsonl", "use a path, or a URL with s3://, gs://, http://, https://, root"),
        ("ftp://h/run", "cannot read 'ftp://h/run': use a path, or a URL with s3://, gs://"),
        ("file:///no/t.jsonl", "'/no/t.jsonl' does not exist"),
        ("file://h/t.jsonl", "is on the host 'h': use file:///PATH"),
    ],
)
def test_urls_that_cannot_be_reached(url, message, analyze):
    with pytest.raises(TraceError) as raised:
        Trace(url)
    assert message in str(raised.value)
    assert analyze(url) == (2, "", f"roast-analyze: {raised.value}\n")


def test_a_file_url_is_read_in_place(write_trace, task, cache):
    trace = write_trace(task("a"))

    with Trace(trace.as_uri()) as opened:
        assert opened.path == trace
    assert not [path for path in cache() if "files" in path]


def test_credentials_of_a_url_are_nowhere(web, analyze, tmp_path, segment, monkeypatch):
    (web.folder / "t.jsonl").write_bytes(segment(1))
    url = f"{web.url.replace('//', '//me:SECRET@')}/t.jsonl?X-Amz-Signature=SECRET"
    monkeypatch.chdir(tmp_path)

    outputs = [
        analyze(url),
        analyze(url, "--html"),
        analyze("check", url, "--json"),
        analyze("each", url, "SELECT path FROM trace_info"),
        analyze("store", "add", url, "--to", "store"),
        analyze("sql", "store", "SELECT paths, owner FROM runs", "--format", "csv"),
        analyze("export", url, "--speedscope", "t.json"),
        analyze("metrics", url, url),  # a wrong call
    ]

    assert [code for code, _, _ in outputs[:6]] == [0] * 6
    # The report is not written into the cache.
    assert outputs[1][1] == f"report: {tmp_path / 't.html'}\n"
    assert json.loads(outputs[2][1])[0]["path"] == f"{web.url}/t.jsonl?…"
    # The copy belongs to the user who adds it, not to the owner of the trace.
    assert outputs[5][1] == f'paths,owner\n"[""{web.url}/t.jsonl?…""]",\n'
    assert "SECRET" not in repr(outputs)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"SECRET" not in path.read_bytes(), path


def test_a_server_that_refuses_head(web, segment):
    (web.folder / "signed").mkdir()
    (web.folder / "signed" / "t.jsonl").write_bytes(segment(1))

    for _ in range(2):
        with Trace(f"{web.url}/signed/t.jsonl?X-Amz-Signature=x") as trace:
            assert trace.rows(COUNT) == [(1,)]
    asked = [request.split("/")[0] for request in web.requests]
    assert asked == ["HEAD ", "GET ", "GET ", "HEAD ", "GET "]


def test_a_redirect_to_another_http_address(web, segment):
    (web.folder / "t.jsonl").write_bytes(segment(1))

    with Trace(f"{web.url}/to//t.jsonl") as trace:
        assert trace.rows(COUNT) == [(1,)]


def test_a_query_cannot_read_urls(web, analyze, segment):
    (web.folder / "t.jsonl").write_bytes(segment(1))
    url = f"{web.url}/t.jsonl"
    analyze("sql", url, COUNT)
    web.requests.clear()

    for query in (f"FROM read_json('{url}')", f"FROM '{url}'", f"ATTACH '{url}'"):
        code, _, err = analyze("sql", url, query)
        assert (code, " is not allowed: a query may only read the trace" in err) == (2, True)
    # The copy in the cache cannot be read by its path, either.
    code, _, err = analyze("sql", url, f"FROM read_text('{path_of(url)}')")
    assert (code, "is not allowed" in err) == (2, True)
    assert {request.split()[0] for request in web.requests} == {"HEAD"}


def test_without_the_cache_nothing_remains(web, cache, tmp_path, segment, monkeypatch):
    (web.folder / "t.jsonl").write_bytes(segment(1))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))

    with at_hand([f"{web.url}/t.jsonl"], cache=False) as [copy]:
        assert copy.read_bytes() == segment(1)
    assert not copy.exists()
    assert cache() == []
    # A folder in which nothing can be written.
    monkeypatch.setenv("ROAST_CACHE_DIR", "/dev/null/cache")
    with pytest.warns(CacheNotUsed):
        assert path_of(f"{web.url}/t.jsonl").read_bytes() == segment(1)


@pytest.mark.exhaustive
def test_several_traces_and_one_that_cannot_be_read(web, analyze, lines, task):
    for name in ("before", "after"):
        (web.folder / name).mkdir()
        (web.folder / name / "t.jsonl").write_bytes(lines(task("a"), trace_id=name))
    before, after, none = (f"{web.url}/{name}/t.jsonl" for name in ("before", "after", "404"))

    assert each(COUNT, [before, after])["path"].to_list() == [before, after]
    code, out, err = analyze("each", before, none, COUNT, "--format", "csv")
    assert (code, out) == (1, f"n,trace_id,path\n1,before,{before}\n")
    assert err.startswith(f"roast-analyze: {none}: '{none}' does not exist")
    # Equal file names are told apart by their folders.
    _, out, _ = analyze(before, after)
    assert "before/t" in out
    assert "after/t" in out
    with pytest.raises(TraceError, match=f"'{none}' does not exist"):
        each(COUNT, [none])
    assert Store(web.folder / "store").add([before, none]).added == 1


def test_calls_that_a_url_cannot_be_used_for(web, analyze):
    url = f"{web.url.replace('//', '//me:SECRET@')}/t.jsonl"
    for call, message in {
        f"{url} --follow": f"--follow cannot read '{web.url}/t.jsonl' as it grows: leave",
        f"import yappi x --into {url}": f"cannot write '{web.url}/t.jsonl': name a file, and",
    }.items():
        code, _, err = analyze(*call.split())
        assert code == 2
        assert message in err
        assert "SECRET" not in err
    assert web.requests == []


def test_a_url_as_a_path_is_no_url():
    with pytest.raises(TraceError, match=r"'s3:/bucket/t\.jsonl' .*: pass a URL as a text"):
        Trace(Path("s3://bucket/t.jsonl"))


def test_an_assistant_reads_a_url_that_its_server_is_started_with(web, segment):
    (web.folder / "t.jsonl").write_bytes(segment(1))
    options = argparse.Namespace(cache=True, memory_limit=None)

    runs = TraceRuns(f"{web.url}/t.jsonl?token=SECRET", options)
    [row] = runs.rows()
    assert (row["run"], row["paths"]) == ("t", [f"{web.url}/t.jsonl?…"])
    assert runs.open("t").rows(COUNT) == [(1,)]
    runs.close()
    with pytest.raises(TraceError, match="' does not exist: name a trace"):
        TraceRuns(f"{web.url}/404/t.jsonl", options)


def test_an_error_about_the_content_names_the_url(web, analyze):
    (web.folder / "t.jsonl").write_text("<html>log in</html>")
    (web.folder / "empty.jsonl").write_text("")

    for name, message in {"t": "is an HTML page: open", "empty": "is empty"}.items():
        url = f"{web.url}/{name}.jsonl"
        code, _, err = analyze(url)
        assert code == 2
        assert err.startswith(f"roast-analyze: '{url}' {message}")


@pytest.mark.exhaustive
def test_a_missing_driver_is_named():
    """Each in its own process, because a driver stays imported."""
    extras = {"s3://b": "s3", "gs://b": "gs", "https://h": "http", "root://h/": "root"}
    modules = {"s3": "s3fs", "gs": "gcsfs", "http": "aiohttp", "root": "fsspec_xrootd"}
    processes = {}
    for place, extra in extras.items():
        code = (
            f"import sys; sys.modules[{modules[extra]!r}] = None\n"
            f"from roast_analyze.cli import main; sys.exit(main(['{place}/t.jsonl']))"
        )
        processes[place, extra] = subprocess.Popen(
            [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True
        )
    for (place, extra), process in processes.items():
        _, err = process.communicate()
        library = modules[extra].replace("_", "-")
        assert process.returncode == 2
        assert err == (
            f"roast-analyze: reading '{place}/t.jsonl' needs {library}, which is not "
            f"installed: pip install '.[{extra}]' in a clone of roast (docs: how-to/remote)\n"
        )


# -- S3 --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def s3_server():
    """The address of a server that speaks S3's protocol."""
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(s3_server, monkeypatch):
    """A client of the server, with an empty bucket."""
    import boto3

    for name, value in {
        "AWS_ENDPOINT_URL": s3_server,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    client = boto3.client("s3")
    client.create_bucket(Bucket="bucket")
    yield client
    for item in client.list_objects_v2(Bucket="bucket").get("Contents", ()):
        client.delete_object(Bucket="bucket", Key=item["Key"])


def test_an_invalid_version_on_s3(s3, analyze, segment):
    s3.put_object(Bucket="bucket", Key="t.jsonl", Body=segment(1))

    code, _, err = analyze("sql", "s3://bucket/t.jsonl?versionId=abc", COUNT)

    assert code == 2
    assert err == (
        "roast-analyze: cannot read 's3://bucket/t.jsonl?…': the server refuses the request as "
        "invalid: check the URL, and a versionId in it (docs: how-to/remote)\n"
    )


def test_a_trace_on_s3(s3, analyze, segment):
    s3.put_object(Bucket="bucket", Key="runs/t.jsonl", Body=segment(1))
    url = "s3://bucket/runs/t.jsonl"

    assert analyze("sql", url, COUNT, "--format", "csv") == (0, "n\n1\n", "")
    copied = path_of(url).stat()
    assert analyze("sql", url, COUNT, "--format", "csv") == (0, "n\n1\n", "")
    assert path_of(url).stat() == copied
    # An object is never appended to, but replaced.
    s3.put_object(Bucket="bucket", Key="runs/t.jsonl", Body=segment(2) + segment(3))
    with Trace(url) as trace:
        assert trace.rows(COUNT) == [(2,)]


def test_only_the_new_end_of_an_object_is_read(s3, large, monkeypatch):
    whole, url = large(5_000), "s3://bucket/t.jsonl"
    s3.put_object(Bucket="bucket", Key="t.jsonl", Body=whole[:-20_000])
    path_of(url)
    s3.put_object(Bucket="bucket", Key="t.jsonl", Body=whole)
    monkeypatch.delattr("roast_analyze.open.drivers.Place.download")

    assert path_of(url).read_bytes() == whole


def test_a_signed_url_of_s3(s3, segment):
    """At a web server with range requests."""
    s3.put_object(Bucket="bucket", Key="t.jsonl", Body=segment(1))
    place = {"Bucket": "bucket", "Key": "t.jsonl"}

    with Trace(s3.generate_presigned_url("get_object", place)) as trace:
        assert trace.rows(COUNT) == [(1,)]
        assert repr(trace).endswith("/bucket/t.jsonl?…')")


def test_a_folder_of_segments_on_s3(s3, analyze, segment):
    for name, number in {"1.jsonl": 1, "2.jsonl": 2, "a b/../3 $(x).jsonl": 3}.items():
        s3.put_object(Bucket="bucket", Key=f"run/{name}", Body=segment(number))
    s3.put_object(Bucket="bucket", Key="run/4 $(x) *.jsonl", Body=segment(4))
    s3.put_object(Bucket="bucket", Key="run/.hidden.jsonl", Body=segment(5))

    keys = analyze("sql", "s3://bucket/run/", "SELECT key FROM tasks", "--format", "csv")
    assert keys == (0, "key\na-1\na-2\na-4\n", "")
    assert shown_name(path_of("s3://bucket/run") / "1.jsonl") == "s3://bucket/run/1.jsonl"
    s3.delete_object(Bucket="bucket", Key="run/4 $(x) *.jsonl")
    with Trace("s3://bucket/run/") as trace:
        assert trace.rows("SELECT key FROM tasks ORDER BY ALL") == [("a-1",), ("a-2",)]


@pytest.mark.usefixtures("s3")
def test_errors_of_s3(analyze, monkeypatch):
    def message(url):
        code, out, err = analyze(url)
        assert (code, out, err.count("\n")) == (2, "", 1)
        return err

    assert "'s3://bucket/t.jsonl' does not exist: name a" in message("s3://bucket/t.jsonl")
    assert "'s3://none/t.jsonl' does not exist: name a" in message("s3://none/t.jsonl")
    assert "'s3://bucket' contains no trace" in message("s3://bucket")
    # Credentials do not belong there.
    err = message("s3://AKIA:SEC/RET@bucket/t.jsonl")
    assert "cannot read 's3://bucket/t.jsonl': the URL is invalid" in err
    assert "RET" not in err
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert "no valid credentials: use AWS_PROFILE, " in message("s3://bucket/t.jsonl")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert "the connection was refused" in message("s3://bucket/t.jsonl")


def test_a_store_on_s3_is_no_trace(s3, analyze):
    s3.put_object(Bucket="bucket", Key="store/runs/_delta_log/0.json", Body=b"{}")

    code, _, err = analyze("s3://bucket/store", "--json")
    assert (code, "leave out --html and stores" in err) == (2, True)


# -- Google Cloud Storage --------------------------------------------------------------------


class Bucket(http.server.BaseHTTPRequestHandler):
    """The part of Google's protocol that reads a bucket with some objects."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, _, query = self.path.partition("?")
        query = dict(urllib.parse.parse_qsl(query))
        objects, name = self.server.objects, urllib.parse.unquote(path.partition("/o/")[2])
        if path.endswith("/o"):
            found = [name for name in objects if name.startswith(query.get("prefix", ""))]
            answer = json.dumps({"items": [self.described(name) for name in found]}).encode()
        elif name not in objects:
            answer = None
        elif query.get("alt") == "media":
            answer = objects[name]
        else:
            answer = json.dumps(self.described(name)).encode()
        self.send_response(404 if answer is None else 200)
        self.send_header("Content-Length", str(len(answer or b"")))
        self.end_headers()
        self.wfile.write(answer or b"")

    def described(self, name):
        t = "2026-08-31T14:05:00Z"
        described = {"name": name, "bucket": "bucket", "timeCreated": t, "updated": t}
        size = len(self.server.objects[name])
        return {**described, "size": str(size), "etag": f"e{size}", "generation": "1"}

    def log_message(self, *_):
        pass


@pytest.mark.exhaustive
def test_traces_on_google_cloud_storage(analyze, segment, monkeypatch):
    with Server(("127.0.0.1", 0), Bucket) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("FSSPEC_GS_TOKEN", "anon")
        server.objects = {"run/1.jsonl": segment(1), "run/2.jsonl": segment(2)}

        for url, count in {"gs://bucket/run/1.jsonl": 1, "gs://bucket/run": 2}.items():
            assert analyze("sql", url, COUNT, "--format", "csv") == (0, f"n\n{count}\n", "")
        server.objects["run/1.jsonl"] = segment(1) + segment(3)
        with Trace("gs://bucket/run/1.jsonl") as trace:
            assert trace.rows(COUNT) == [(2,)]
        code, out, err = analyze("gs://bucket/none.jsonl")
        assert (code, out) == (2, "")
        assert err.startswith("roast-analyze: 'gs://bucket/none.jsonl' does not exist: name a")
        server.shutdown()


# -- XRootD ----------------------------------------------------------------------------------


@pytest.fixture
def xrootd():
    """A folder, and the address at which an XRootD server has it."""
    program = shutil.which("xrootd")
    if program is None:
        pytest.skip("needs the program xrootd, as in Debian's package xrootd-server")
    # A server that root starts becomes another user, who cannot read pytest's folders.
    with (
        tempfile.TemporaryDirectory(prefix="xrootd-") as name,
        socket.create_server(("127.0.0.1", 0)) as free,
    ):
        port = free.getsockname()[1]
        free.close()
        place = Path(name)
        for folder in (place, place / "data", place / "admin"):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o777)
        (place / "xrootd.cfg").write_text(
            f"all.export /\noss.localroot {place}/data\nall.adminpath {place}/admin\n"
            f"all.pidpath {place}/admin\nxrd.port {port}\nxrd.network nodnr\n"
        )
        user = ["-R", "nobody"] if os.getuid() == 0 else []
        log = ["-l", str(place / "admin" / "log")]
        command = [program, *user, *log, "-c", str(place / "xrootd.cfg")]
        process = subprocess.Popen(command, cwd=place)
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        yield place / "data", f"root://127.0.0.1:{port}/"
        process.kill()
        process.wait()


def test_traces_at_xrootd(xrootd, analyze, segment):
    data, address = xrootd
    (data / "run").mkdir()
    for number in (1, 2):
        (data / "run" / f"{number}.jsonl").write_bytes(segment(number))

    for path, count in {"/run/1.jsonl": 1, "/run": 2}.items():
        csv = analyze("sql", f"{address}{path}", COUNT, "--format", "csv")
        assert csv == (0, f"n\n{count}\n", "")
    (data / "run" / "1.jsonl").write_bytes(segment(1) + segment(3))
    with Trace(f"{address}/run/1.jsonl?authz=SECRET") as trace:
        assert trace.rows(COUNT) == [(2,)]
        assert repr(trace) == f"Trace('{address}/run/1.jsonl?…')"


def test_only_what_was_appended_is_read_at_xrootd(xrootd, large, monkeypatch):
    data, address = xrootd
    whole, url = large(5_000), f"{address}/t.jsonl"
    (data / "t.jsonl").write_bytes(whole[:-20_000])
    path_of(url)
    (data / "t.jsonl").write_bytes(whole)
    monkeypatch.delattr("roast_analyze.open.drivers.Place.download")

    assert path_of(url).read_bytes() == whole


def test_errors_of_xrootd(xrootd, analyze, segment):
    data, address = xrootd
    (data / "private.jsonl").write_bytes(segment(1))
    (data / "private.jsonl").chmod(0)

    for url, message in {
        f"{address}/none.jsonl": "does not exist: name a trace file or a folder of segments",
        f"{address}/private.jsonl": "access is denied: check the permissions, or use X509_",
        "root://127.0.0.1:1//t.jsonl": "no connection: check the address and the port",
        "root://host.invalid//t.jsonl": "the host is unknown: check the address",
    }.items():
        code, out, err = analyze(url.replace("//", "//me:SECRET@", 1))
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err
        assert f"'{url}'" in err
        assert "SECRET" not in err
