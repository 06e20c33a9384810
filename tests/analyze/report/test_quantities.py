from functools import partial

from analyze.report.reading import plain
from roast_analyze.report import quantities as q

TRIES = partial(q.counted, noun="try", plural="tries")
NAN, INF = float("nan"), float("inf")
TEXTS = {
    q.seconds: {
        None: "–", NAN: "–", INF: "–", 0: "0 s", 2.5e-6: "2.5 µs", 0.000999999: "1 ms",
        0.0123: "12.3 ms", 0.99999: "1 s", 1: "1 s", 12.34: "12.3 s", 59.96: "1 min",
        192: "3 min 12 s", 7500: "2 h 5 min", 7559: "2 h 6 min", 86_399: "1 d",
        90_000: "1 d 1 h", 3e8: "3,472 d 5 h", -3: "−3 s",
    },
    q.byte_size: {
        None: "–", NAN: "–", 0: "0 B", 1023: "1,023 B", 1536: "1.5 KiB", 3 * 1024**3: "3 GiB",
    },
    q.count: {
        NAN: "–", 0: "0", 12_345: "12,345", 23_400_000: "23.4 million",
        5_200_000_000: "5.2 billion", 10**12: "1 trillion", 10**15: "1,000 trillion",
    },
    TRIES: {0: "0 tries", 1: "1 try", 2: "2 tries"},
    q.share: {None: "–", NAN: "–", 0: "0 %", 0.004: "<1 %", 0.755: "76 %", 1: "100 %"},
    q.times: {None: "–", 1.318: "×1.32", 0.25: "×0.25", 1: "×1"},
    q.number: {INF: "–", 1234.5: "1,234"},
    partial(q.rate, what="events"): {
        NAN: "–", 0.1234: "0.123 events/s", 123.4: "123 events/s", 2e7: "20 million events/s",
    },
    q.core_time: {
        NAN: ("–", "core-hours"), 90: ("90", "core-seconds"), 600: ("10", "core-minutes"),
        7200: ("2", "core-hours"),
    },
    partial(q.instant, 0.0): {
        0: "1970-01-01 00:00:00 (UTC)", -19800.2: "1969-12-31 18:30:00 (UTC-05:30)",
        NAN: "1970-01-01 00:00:00 (UTC)",
    },
    partial(q.instant, utc_offset_seconds=0): {
        None: "–", NAN: "–", 1e300: "1e+300 s since 1970",
    },
}  # fmt: skip


def test_quantities_as_text():
    for function, expected in TEXTS.items():
        for value, text in expected.items():
            found = function(value)
            assert (plain(found) if isinstance(found, str) else found) == text, value


def test_series_and_the_rest():
    assert q.series(["a"]) + q.and_more(1, 1) == "a"
    assert q.series(["a", "b", "c"]) + q.and_more(1234, 3) == "a, b and c, and 1,231 more"
