"""The file: whole blocks, by each ending, and what happens when the disk says no."""

import gzip
import json

import pytest
import zstandard

from roast_recorder.sink import FileSink

RECORDS = [{"kind": "event", "t": float(t), "topic": "x"} for t in range(3)]


def plain(data):
    return data


def unzstd(data):
    return zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()


@pytest.mark.parametrize(
    ("ending", "decompress"),
    [(".jsonl", plain), (".jsonl.zst", unzstd), (".jsonl.gz", gzip.decompress)],
)
def test_blocks_are_readable_as_soon_as_they_are_written(tmp_path, ending, decompress):
    sink = FileSink(tmp_path / f"my.run{ending}")

    sink.write(RECORDS[:2])
    first = sink.path.read_bytes()
    sink.write(RECORDS[2:])

    assert len(decompress(first).splitlines()) == 2
    lines = decompress(sink.path.read_bytes()).splitlines()
    assert [json.loads(line) for line in lines] == RECORDS
    assert sink.records_by_kind == {"event": 3}
    assert sink.nbytes == sink.path.stat().st_size


def test_a_block_that_does_not_fit_leaves_the_file_whole(tmp_path):
    sink = FileSink(tmp_path / "trace.jsonl")
    sink.write(RECORDS[:1])
    whole = sink.path.read_bytes()
    write = sink._file.write

    class HalfFull:
        """A disk that takes ten bytes more."""

        def __init__(self, file):
            self.file, self.room = file, 10

        def write(self, data):
            if not self.room:
                raise OSError(28, "No space left on device")
            written = write(data[: self.room])
            self.room -= written
            return written

        def __getattr__(self, name):
            return getattr(self.file, name)

    file, sink._file = sink._file, HalfFull(sink._file)
    with pytest.raises(OSError, match="No space"):
        sink.write(RECORDS[1:])
    sink._file = file

    assert sink.path.read_bytes() == whole
    assert sink.records_by_kind == {"event": 1}
    sink.write(RECORDS[1:])
    assert len(sink.path.read_bytes().splitlines()) == 3


def test_nothing_is_written_for_no_records(tmp_path):
    sink = FileSink(tmp_path / "trace.jsonl.zst")

    sink.write([])

    assert sink.path.read_bytes() == b""
