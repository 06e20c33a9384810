"""Compare a trace at a URL with a local one: ``make benchmark-remote``.

The command is ``roast-analyze sql TRACE QUERY`` in a process of its own, of a synthetic trace
(see :mod:`synthetic`). It is at a path, at a web server and at an S3 server (moto) on loopback,
as one file and as a folder of segments. *Cold* is with an empty cache, *second* with the one
that this has filled, *grown* after the last tenth of the file, or the last segment, has been
added. Medians; the requests are those that the web server got.
"""

from __future__ import annotations

import argparse
import http.server
import logging
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

from synthetic import make_trace

QUERY = "SELECT outcome, count(*) FROM task_runs GROUP BY ALL"
REPETITIONS = 3


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serve files, and count requests."""

    requests = 0

    def log_message(self, *_: object) -> None:
        Handler.requests += 1


def seconds_of(trace: str, cache: Path) -> float:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "roast_analyze", "sql", trace, QUERY],
        env={**os.environ, "ROAST_CACHE_DIR": str(cache)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - began


def upload(client: object, folder: Path, names: list[str]) -> None:
    for name in names:
        for path in sorted((folder / name).rglob("*.zst")) or [folder / name]:
            client.upload_file(str(path), "bucket", str(path.relative_to(folder)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100_000)
    options = parser.parse_args()
    logging.getLogger("werkzeug").disabled = True  # it would print every request
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer

    with tempfile.TemporaryDirectory() as scratch:
        folder, whole = Path(scratch) / "site", Path(scratch) / "whole"
        folder.mkdir()
        whole.mkdir()
        make_trace(whole / "t.jsonl.zst", tasks=options.tasks)
        make_trace(whole / "run", tasks=options.tasks, segment_bytes=32 * 2**20)
        for path in (whole / "run").iterdir():
            print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")
        print(f"t.jsonl.zst: {(whole / 't.jsonl.zst').stat().st_size / 1e6:.1f} MB")

        handler = partial(Handler, directory=str(folder))
        web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=web.serve_forever, daemon=True).start()
        s3 = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        s3.start()
        host, port = s3.get_host_and_port()
        os.environ |= {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        import boto3

        client = boto3.client("s3")
        client.create_bucket(Bucket="bucket")
        places = {
            "path": f"{folder}/",
            "http": f"http://127.0.0.1:{web.server_port}/",
            "s3": "s3://bucket/",
        }
        print("trace  place  cold (s)  second (s)  grown (s)  requests")
        for name in ("t.jsonl.zst", "run"):
            for place, address in places.items():
                times: dict[str, list[float]] = {"cold": [], "second": [], "grown": []}
                requests = []
                for _ in range(REPETITIONS):
                    for path in folder.iterdir():
                        shutil.rmtree(path) if path.is_dir() else path.unlink()
                    part = folder / name
                    if name == "run":
                        shutil.copytree(whole / name, part)
                        max(part.iterdir()).unlink()
                    else:
                        data = (whole / name).read_bytes()
                        part.write_bytes(data[: len(data) * 9 // 10])
                    upload(client, folder, [name])
                    with tempfile.TemporaryDirectory(dir=scratch) as cache:
                        trace = address + name + ("/" if name == "run" else "")
                        for moment, measured in times.items():
                            if moment == "grown":
                                if name == "run":
                                    shutil.copytree(whole / name, part, dirs_exist_ok=True)
                                else:
                                    shutil.copy(whole / name, part)
                                upload(client, folder, [name])
                            Handler.requests = 0
                            measured.append(seconds_of(trace, Path(cache)))
                            requests.append(Handler.requests)
                cells = [f"{statistics.median(values):.2f}" for values in times.values()]
                counts = "/".join(map(str, requests[:3])) if place == "http" else ""
                print(f"{name}  {place}  {'  '.join(cells)}  {counts}", flush=True)
                for item in client.list_objects_v2(Bucket="bucket").get("Contents", ()):
                    client.delete_object(Bucket="bucket", Key=item["Key"])
        s3.stop()


if __name__ == "__main__":
    main()
