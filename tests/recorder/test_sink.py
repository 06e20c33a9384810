"""One file: whole after each append, for DuckDB and zstd too, and when the disk says no."""

import errno
import gzip
import json
import os
import random
import stat
import subprocess
import threading

import duckdb
import pytest
import zstandard

from roast_recorder.writer import sink
from roast_recorder.writer.sink import ENDINGS, TraceFile


def lines(count: int, seed: int = 0) -> bytes:
    """Transitions as a scheduler tells them: two of each task, all of one layer."""
    draw = random.Random(seed)
    t = 1.7e9 + seed
    records = []
    for n in range(seed * count, (seed + 1) * count):
        t += draw.random() * (n % 2) / 100
        record = {
            "kind": "transition",
            "t": t,
            "key": f"('read-parquet-7fd7e2c4b1f0a6d39c1e5a8b2f4d6c80', {n // 2})",
            "start": ["waiting", "processing"][n % 2],
            "finish": ["processing", "memory"][n % 2],
            "stimulus_id": f"task-finished-{t}",
            "worker": f"tcp://10.0.0.{draw.randrange(16)}:40331",
            "run_id": n // 2,
            "nbytes": draw.randrange(10**4),
        }
        records.append(json.dumps(record).encode() + b"\n")
    return b"".join(records)


def unzstd(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()


DECOMPRESS = {".jsonl": bytes, ".jsonl.zst": unzstd, ".jsonl.gz": gzip.decompress}


def content(path) -> bytes:
    return DECOMPRESS[path.name[path.name.index(".jsonl") :]](path.read_bytes())


def duckdb_count(path) -> int:
    query = f"SELECT count(*) FROM read_json('{path}', format = 'newline_delimited')"
    return duckdb.sql(query).fetchall()[0][0]


@pytest.fixture(params=ENDINGS)
def path(request, tmp_path):
    return tmp_path / f"my.run{request.param}"


@pytest.fixture
def half_full(monkeypatch):
    """A disk that takes ten bytes more, and then none until it is given room."""
    write, room = os.pwrite, [10]

    def pwrite(descriptor, data, offset):
        if len(data) <= 3:  # these lie within what the file has
            return write(descriptor, data, offset)
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(descriptor, data[: room[0]], offset)
        room[0] -= written
        return written

    monkeypatch.setattr(os, "pwrite", pwrite)
    return room


def test_the_file_is_whole_after_each_append(path):
    file, handed_over = TraceFile(path), b""

    for seed in range(60):
        file.append(lines(40, seed))
        handed_over += lines(40, seed)

        assert content(path) == handed_over
        assert duckdb_count(path) == 40 * (seed + 1)
        assert file.nbytes == path.stat().st_size


def test_the_zstd_tool_finds_whole_frames(tmp_path):
    file = TraceFile(tmp_path / "trace.jsonl.zst")
    for seed in range(60):
        file.append(lines(40, seed))

    done = subprocess.run(["zstd", "-dc", file.path], capture_output=True)

    assert done.stderr == b""
    assert done.stdout == b"".join(lines(40, seed) for seed in range(60))


def test_small_appends_compress_as_well_as_a_large_one(tmp_path):
    flushes = [lines(40, seed) for seed in range(200)]

    small, large = TraceFile(tmp_path / "small.jsonl.zst"), TraceFile(tmp_path / "l.jsonl.zst")
    for flush in flushes:
        small.append(flush)
    large.append(b"".join(flushes))

    assert small.nbytes <= 1.15 * large.nbytes
    assert small.nbytes < 0.85 * sum(len(zstandard.compress(flush, 6)) for flush in flushes)


@pytest.mark.parametrize(
    ("appends", "frames"),
    [
        ([1], 1),
        ([50, 50], 1),  # the first has not held FRAME_BYTES
        ([100, 1], 2),
        ([1, 250, 1], 2),  # held 1, so 250 more come into it
        ([250], 1),
        ([801], 2),  # PIECE_BYTES are 800 here
        ([50, 1650, 1], 3),  # 50 + 800, 800, 50 + 1
    ],
)
def test_frames(tmp_path, monkeypatch, appends, frames):
    monkeypatch.setattr(sink, "FRAME_BYTES", 100)
    monkeypatch.setattr(sink, "PIECE_BYTES", 800)
    file = TraceFile(tmp_path / "trace.jsonl.zst")

    for nbytes in appends:
        file.append(b"\n" * nbytes)

    data = file.path.read_bytes()
    assert data.count(zstandard.FRAME_HEADER) == frames
    assert len(unzstd(data)) == sum(appends)


def test_a_large_append_is_cut_at_the_ends_of_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(sink, "FRAME_BYTES", 1000)
    monkeypatch.setattr(sink, "PIECE_BYTES", 1000)
    file = TraceFile(tmp_path / "trace.jsonl.zst")

    file.append(lines(40))

    frames = file.path.read_bytes().split(zstandard.FRAME_HEADER)[1:]
    assert len(frames) > 5
    for frame in frames:
        assert unzstd(zstandard.FRAME_HEADER + frame).endswith(b"}\n")


def test_an_append_that_does_not_fit_leaves_the_file_as_it_was(path, half_full):
    half_full[0] = 10**6
    file = TraceFile(path)
    file.append(lines(5, 1))
    file.append(lines(5, 2))
    whole = path.read_bytes()

    half_full[0] = 10
    with pytest.raises(OSError, match="No space"):
        file.append(lines(5, 3))

    assert path.read_bytes() == whole
    assert file.nbytes == len(whole)

    half_full[0] = 10**6
    file.append(lines(5, 4))
    assert content(path) == lines(5, 1) + lines(5, 2) + lines(5, 4)


def test_a_disk_that_refuses_to_be_put_right_is_asked_again(path, monkeypatch):
    file = TraceFile(path)
    file.append(lines(5, 1))

    def refuse(*_):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "ftruncate", refuse)
        broken.setattr(os, "pwrite", refuse)
        with pytest.raises(OSError, match="Input/output"):
            file.append(lines(5, 2))
        with pytest.raises(OSError, match="Input/output"):
            file.append(lines(5, 2))

    file.append(lines(5, 3))
    assert content(path) == lines(5, 1) + lines(5, 3)


@pytest.mark.parametrize("kept", range(4))
def test_the_newest_appends_can_be_given_back(path, kept):
    file, sizes = TraceFile(path), [0]
    for seed in range(4):
        file.append(lines(5, seed))
        sizes.append(file.nbytes)

    file.give_back(sizes[kept])

    assert content(path) == b"".join(lines(5, seed) for seed in range(kept))
    assert file.nbytes == path.stat().st_size
    file.append(lines(5, 9))
    assert content(path).endswith(lines(5, 9))


@pytest.mark.parametrize("torn", [b"", b"t", b"torn in the middle of a block"])
def test_another_writer_goes_on(path, torn):
    killed = TraceFile(path)
    killed.append(lines(5, 1))
    nbytes = killed.nbytes
    del killed
    end_nbytes = 3 if path.suffix == ".zst" else 0  # what the torn write had written over
    with path.open("r+b") as file:
        file.seek(nbytes - end_nbytes)
        file.write(torn)

    file = TraceFile(path, resume_nbytes=nbytes)

    assert content(path) == lines(5, 1)
    file.append(lines(5, 3))
    assert content(path) == lines(5, 1) + lines(5, 3)


def test_a_file_that_was_cut_is_not_gone_on_with(path):
    path.write_bytes(b"{}\n")

    with pytest.raises(ValueError, match=r"has 3 bytes where 100 had been written"):
        TraceFile(path, resume_nbytes=100)


def test_an_older_trace_stays_until_there_is_something_to_write(path):
    path.write_bytes(b"an older trace\n" * 1000)
    path.chmod(0o644)

    file = TraceFile(path)
    file.append(b"")
    assert path.read_bytes() == b"an older trace\n" * 1000

    file.append(lines(1))
    assert content(path) == lines(1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_nobody_else_may_read_it(path):
    TraceFile(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_without_anything_in_it_is_taken_away(path):
    file = TraceFile(path)
    file.close()
    file.close()

    assert not path.exists()


def test_two_recordings_do_not_share_a_file(path):
    first = TraceFile(path)

    with pytest.raises(ValueError, match="is being recorded to; stop that recording"):
        TraceFile(path)

    first.close()
    TraceFile(path)


@pytest.mark.parametrize("name", ["trace.json", "trace.zst", "jsonl", "trace.jsonl.xz"])
def test_other_names_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"it must end in \.jsonl, \.jsonl\.zst, \.jsonl\.gz"):
        TraceFile(tmp_path / name)


def test_a_pipe_gets_complete_frames(path):
    os.mkfifo(path)
    received = []
    reader = threading.Thread(target=lambda: received.append(path.read_bytes()))
    reader.start()

    file = TraceFile(path)
    file.append(lines(5, 1))
    file.append(lines(5, 2))
    file.close()
    reader.join()

    decompress = DECOMPRESS[path.name.removeprefix("my.run")]
    assert decompress(received[0]) == lines(5, 1) + lines(5, 2)
    assert path.is_fifo()
