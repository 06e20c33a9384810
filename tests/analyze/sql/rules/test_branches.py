"""Rules unused-branches and compression."""

import pytest


def branches(**read_seconds: float | None) -> list[dict]:
    """Return branches of 1 MB each."""
    return [
        {"branch": name, "compressed_bytes": 10**6, "uncompressed_bytes": 2 * 10**6}
        | ({} if seconds is None else {"read_seconds": seconds})
        for name, seconds in read_seconds.items()
    ]


def test_preloaded_branches_that_are_not_used(apply, process, worker):
    read = branches(x=1e-4, y=None, z=None, nJet=None)
    # nJet is used through its offsets.
    columns = ["x-data", "nJet-offsets"]
    chunks = [
        {
            "seconds": 3.0,
            "open_seconds": 2.0,
            "bytes_read": 5 * 10**6,
            "branches": read,
            "columns": columns,
        }
    ] * 4

    assert apply(
        "unused-branches",
        worker("w1"),
        *process(*chunks),
        columns="core_seconds, sentence, change",
    ) == [
        (
            # Half of the 4 of 5 MB that are branches.
            pytest.approx(0.5 * 0.8 * 8.0),
            "2 of 4 branches that are read are never used, such as y: 7.63 MiB of 15.3 MiB.",
            "Preload only the branches that the processor uses: nJet, x.",
        )
    ]


def test_all_branches_are_used(apply, process, worker):
    read = {"branches": branches(x=0.1, y=1e-4), "columns": ["x-data", "y-data"]}
    # Some chunks need fewer.
    other = {"branches": branches(x=0.1, y=None), "columns": ["x-data"]}
    chunks = [{"seconds": 3.0, "open_seconds": 2.0, "bytes_read": 10**6, **read}]
    chunks += [{"seconds": 3.0, "open_seconds": 2.0, "bytes_read": 10**6, **other}]

    assert apply("unused-branches", worker("w1"), *process(*chunks)) == []


@pytest.mark.parametrize(
    ("read", "in_file", "seconds", "found"),
    [
        (100, 105, 0.1, True),
        (99, 99, 0.1, False),
        (100, 106, 0.1, False),
        (100, 105, 0.04, False),
    ],
)
def test_nearly_all_of_many_branches_are_read(
    apply, process, worker, read, in_file, seconds, found
):
    names = [f"b{number}" for number in range(read)]
    chunk = {
        "seconds": 1.0,
        "branches": branches(**dict.fromkeys(names, seconds / read)),
        "columns": [f"{name}-data" for name in names],
        "file_branches": in_file,
        "read_seconds": seconds,
    }

    assert apply(
        "unused-branches",
        worker("w1"),
        *process(*[chunk] * 4),
        columns="confidence, core_seconds, wall_seconds_min, sentence",
    ) == (
        [
            (
                "low", pytest.approx(0.4), 0.0,
                ("The processor reads 100 of 105 branches: 381 MiB in 0.4 core-seconds. "
                 "It is not recorded whether it needs all of them."),
            )
        ]
        if found
        else []
    )  # fmt: skip


@pytest.mark.parametrize(
    ("algorithm", "seconds", "found"),
    [
        ("LZMA", 1.0, [("LZMA", pytest.approx(0.9 * 4.0))]),
        ("ZLIB", 1.0, [("ZLIB", pytest.approx(0.6 * 4.0))]),
        ("ZSTD", 1.0, []),
        ("LZMA", 0.5, []),
    ],
)
def test_decompression(apply, process, worker, algorithm, seconds, found):
    read = {"decompress_seconds": seconds, "read_seconds": 1.5, "compression": algorithm}
    chunks = [{"seconds": 2.0, "branches": branches(x=1.5), **read}] * 4

    assert apply("compression", worker("w1"), *process(*chunks)) == found


@pytest.mark.parametrize(
    ("cpu_seconds", "core_seconds", "confidence"),
    [(1.8, 0.6 * 4.0, "high"), (0.8, 0.6 * 4 * 0.8, "low"), (None, 0.6 * 4.0, "high")],
)
def test_decompression_on_a_busy_machine(
    apply, process, worker, cpu_seconds, core_seconds, confidence
):
    """Of 2 s, a chunk decompresses for 1 s, at most for its CPU time."""
    read = {"decompress_seconds": 1.0, "read_seconds": 1.5, "compression": "ZLIB"}
    chunks = [
        {"seconds": 2.0, "cpu_seconds": cpu_seconds, **read, "branches": branches(x=1.5)}
    ] * 4

    [(core, least, found, sentence)] = apply(
        "compression",
        worker("w1"),
        *process(*chunks),
        columns="core_seconds, wall_seconds_min, confidence, sentence",
    )
    assert (core, found) == (pytest.approx(core_seconds), confidence)
    is_busy = confidence == "low"
    assert least == pytest.approx(0.6 * core_seconds * (0.4 if is_busy else 1.0))
    assert (" Threads were on the CPU for 40 % of the compute time: " in sentence) == is_busy
