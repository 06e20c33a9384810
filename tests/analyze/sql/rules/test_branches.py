"""Rules unused-branches, large-branch and compression."""

import pytest


def branches(**read_seconds: float | None) -> list[dict]:
    """Return branches of 1 MB each."""
    return [
        {"branch": name, "compressed_bytes": 10**6, "uncompressed_bytes": 2 * 10**6}
        | ({} if seconds is None else {"read_seconds": seconds})
        for name, seconds in read_seconds.items()
    ]


def test_branches_that_are_not_used(apply_each, process, worker):
    chunk = {"seconds": 3.0, "open_seconds": 2.0, "bytes_read": 10**6}
    preloaded = {
        **chunk,
        "bytes_read": 5 * 10**6,
        "branches": branches(x=1e-4, y=None, z=None, nJet=None),
        # nJet is used through its offsets.
        "columns": ["x-data", "nJet-offsets"],
    }
    # All branches are used, but some chunks need fewer.
    used = {"branches": branches(x=0.1, y=1e-4), "columns": ["x-data", "y-data"]}
    fewer = {"branches": branches(x=0.1, y=None), "columns": ["x-data"]}
    # The processor counts events.
    none = {**preloaded, "branches": branches(x=None, y=None), "columns": []}

    assert apply_each(
        "unused-branches",
        [worker("w1"), *process(*[preloaded] * 4)],
        [worker("w1"), *process({**chunk, **used}, {**chunk, **fewer})],
        [worker("w1"), *process(*[none] * 4)],
        columns="core_seconds, sentence, change",
    ) == [
        [
            (
                # Half of the 4 of 5 MB that are branches.
                pytest.approx(0.5 * 0.8 * 8.0),
                (
                    "2 of 4 branches that are read are never used, such as y: 7.63 MiB of "
                    "15.3 MiB."
                ),
                "Preload only the branches that the processor uses: nJet, x.",
            )
        ],
        [],
        [
            (
                pytest.approx(0.4 * 8.0),
                (
                    "2 of 2 branches that are read are never used, such as x: 7.63 MiB of "
                    "7.63 MiB."
                ),
                "Do not preload branches: the processor uses none of them.",
            )
        ],
    ]


def test_nearly_all_of_many_branches_are_read(apply_each, process, worker):
    def records(read, in_file, seconds):
        names = [f"b{number}" for number in range(read)]
        chunk = {
            "seconds": 1.0,
            "branches": branches(**dict.fromkeys(names, seconds / read)),
            "columns": [f"{name}-data" for name in names],
            "file_branches": in_file,
            "read_seconds": seconds,
        }
        return [worker("w1"), *process(*[chunk] * 4)]

    assert apply_each(
        "unused-branches",
        records(read=100, in_file=105, seconds=0.1),
        records(read=99, in_file=99, seconds=0.1),
        records(read=100, in_file=106, seconds=0.1),
        records(read=100, in_file=105, seconds=0.04),
        columns="confidence, core_seconds, wall_seconds_min, sentence",
    ) == [
        [
            (
                "low", pytest.approx(0.4), 0.0,
                ("The processor reads 100 of 105 branches: 381 MiB in 0.4 core-seconds. "
                 "It is not recorded whether it needs all of them."),
            )
        ],
        [],
        [],
        [],
    ]  # fmt: skip


def test_decompression(apply_each, process, worker):
    def records(algorithm, seconds):
        read = {"decompress_seconds": seconds, "read_seconds": 1.5, "compression": algorithm}
        chunk = {"seconds": 2.0, "branches": branches(x=1.5), **read}
        return [worker("w1"), *process(*[chunk] * 4)]

    assert apply_each(
        "compression",
        records("LZMA", 1.0),
        records("ZLIB", 1.0),
        records("ZSTD", 1.0),
        records("LZMA", 0.5),
    ) == [[("LZMA", pytest.approx(0.9 * 4.0))], [("ZLIB", pytest.approx(0.6 * 4.0))], [], []]


def test_decompression_on_a_busy_machine(apply_each, process, worker):
    """Of 2 s, a chunk decompresses for 1 s, at most for its CPU time."""

    def records(cpu_seconds):
        read = {"decompress_seconds": 1.0, "read_seconds": 1.5, "compression": "ZLIB"}
        read |= {"cpu_seconds": cpu_seconds, "branches": branches(x=1.5)}
        return [worker("w1"), *process(*[{"seconds": 2.0, **read}] * 4)]

    found = apply_each(
        "compression",
        *(records(1.8), records(0.8), records(None)),
        columns="core_seconds, wall_seconds_min, confidence, sentence",
    )
    idle = [(pytest.approx(0.6 * 4.0), pytest.approx(0.6 * 0.6 * 4.0), "high")]
    busy = [(pytest.approx(0.6 * 4 * 0.8), pytest.approx(0.6 * 0.6 * 4 * 0.8 * 0.4), "low")]
    assert [[row[:3] for row in rows] for rows in found] == [idle, busy, idle]
    on_cpu = " Threads were on the CPU for 40 % of the compute time: "
    assert [on_cpu in sentence for [(*_, sentence)] in found] == [False, True, False]


def test_a_branch_that_is_most_of_the_bytes(apply_each, process, worker):
    def records(nbytes, read_seconds, others=4):
        large = {
            "branch": "LHEWeight",
            "compressed_bytes": nbytes,
            "read_seconds": read_seconds,
        }
        small = branches(**{f"b{number}": 0.05 for number in range(others)})
        chunk = {"seconds": 2.0, "branches": [large, *small]}
        return [worker("w1"), *process(*[chunk] * 4)]

    large, less, fast, alone = apply_each(
        "large-branch",
        records(nbytes=6 * 2**20, read_seconds=0.5),
        records(nbytes=4 * 2**20, read_seconds=0.5, others=2),
        records(nbytes=6 * 2**20, read_seconds=0.1),
        records(nbytes=6 * 2**20, read_seconds=0.5, others=0),
        columns="entity, confidence, core_seconds, sentence",
    )

    assert large == [
        (
            "LHEWeight", "low", pytest.approx(2.0),
            ("Branch LHEWeight is 24 MiB of 39.3 MiB that were read from 5 branches (61 %), "
             "and 2.0 of 2.8 core-seconds of reading."),
        )
    ]  # fmt: skip
    assert less == fast == alone == []
