"""Output of other tools is recognized by its content, and the error states what reads it."""

import cProfile
import gzip
import shutil

import duckdb
import pytest
import yappi

from measured import darshan_log
from roast_analyze import Trace
from roast_analyze.errors import NotATrace


def yappi_profile(kind):
    def write(path):
        yappi.start()
        sum(range(10))
        yappi.stop()
        yappi.get_func_stats().save(str(path), type=kind)

    return write


def c_profile(path):
    cProfile.runctx("sum(range(10))", {}, {}, str(path))


def darshan(path):
    shutil.copy(darshan_log("sample-dxt-simple.darshan"), path)


def dump(path):
    msgpack = pytest.importorskip("msgpack")
    path.write_bytes(gzip.compress(msgpack.packb({"scheduler": {"id": "s"}, "workers": {}})))


def dump_yaml(path):
    path.write_text("scheduler:\n  address: tcp://s\nworkers: {}\n")


def parquet(path):
    duckdb.sql("SELECT 1 AS x").write_parquet(str(path))


def database(path):
    duckdb.connect(str(path)).close()


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (
            yappi_profile("ystat"),
            "is a Yappi profile: import it with roast-analyze import",
        ),
        (yappi_profile("callgrind"), "is a Yappi profile: import it with"),
        (c_profile, "is a profile of Yappi or cProfile: import it with"),
        (darshan, "is a Darshan log: import it with roast-analyze import darshan"),
        (dump, "is a Dask cluster dump: import it with roast-analyze import dump"),
        (dump_yaml, "is a Dask cluster dump: import it with roast-analyze import dump"),
        (parquet, "is a Parquet file: query it with duckdb"),
        (database, "is a DuckDB database: open it with duckdb"),
        (lambda path: path.write_text("\n<!DOCTYPE html>\n<p>"), "is an HTML page: open it in"),
        (lambda path: path.write_text("hello"), "contains no records: name a trace"),
        (lambda path: path.write_text("{}"), "contains no records: name a trace"),
    ],
)
def test_files_of_other_tools(tmp_path, write, message):
    path = tmp_path / "file"  # the name shows nothing
    write(path)
    with pytest.raises(NotATrace) as caught:
        Trace(path)
    assert str(caught.value).startswith(f"{str(path)!r} {message}")

    with pytest.raises(NotATrace, match="contains no trace: "):
        Trace(tmp_path)
