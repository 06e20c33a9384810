"""Transfers between workers, and spilling."""

from nightly.recording import Recording, Row
from nightly.totals import grouped

#: Maximum difference of two workers' clocks, in seconds.
CLOCKS_DIFFER = 1.0


def transfers(recording: Recording) -> list[Row]:
    """Return one row per transfer: the receiver's report, or else the sender's."""
    words = recording.of("transfer")
    sender_of = _senders(words)
    taken = [id(sender) for sender in sender_of.values()]
    rows = []
    for word in words:
        if id(word) in taken:
            continue
        sender = sender_of.get(id(word))
        start, stop, nbytes = (word.get(name) for name in ("start_t", "stop_t", "nbytes"))
        known = start is not None and stop is not None
        at_source = word if _end(word) == "source" else sender or {}
        rows.append(
            {
                "start_t": start,
                "stop_t": stop,
                "source": word.get("source"),
                "destination": word.get("destination"),
                "bytes": nbytes,
                "keys": word.get("keys"),
                "seconds": max(stop - start, 0.0) if known else None,
                "bytes_per_second": nbytes / (stop - start) if known and stop > start else None,
                "sent_bytes": ((sender or word).get("measured") or {}).get("sent_bytes"),
                "reported_by": "both" if sender else _end(word),
                "sizes_agree": (nbytes, word["keys"]) == (sender["nbytes"], sender["keys"])
                if sender
                else None,
                "source_start_t": at_source.get("start_t"),
                "source_stop_t": at_source.get("stop_t"),
                "source_bytes": at_source.get("nbytes"),
            }
        )
    return rows


def _end(word: dict) -> str | None:
    """Return which end reported."""
    if word.get("worker") is None:
        return None
    ends = ("destination", "source")
    return next((end for end in ends if word.get(end) == word["worker"]), None)


def _senders(words: list[dict]) -> dict[int, dict]:
    """Match reports of senders and receivers: each must be the nearest to the other."""
    found = {}
    alike = grouped(
        words, lambda word: (word.get("source"), word.get("destination"), *sorted(word["keys"]))
    )
    for some in alike.values():
        received = [word for word in some if _end(word) == "destination"]
        sent = [word for word in some if _end(word) == "source"]
        nearest = {id(one): _nearest(one, received) for one in sent}
        for one in received:
            other = _nearest(one, sent)
            if other is not None and nearest[id(other)] is one:
                found[id(one)] = other
    return found


def _nearest(word: dict, others: list[dict]) -> dict | None:
    near = [
        other
        for other in others
        if {"start_t", "stop_t"} <= word.keys() & other.keys()
        and word["start_t"] - CLOCKS_DIFFER <= other["stop_t"]
        and other["start_t"] - CLOCKS_DIFFER <= word["stop_t"]
    ]
    return min(near, key=lambda other: abs(_middle(other) - _middle(word)), default=None)


def _middle(word: dict) -> float:
    return (word["start_t"] + word["stop_t"]) / 2


def spills(recording: Recording) -> list[Row]:
    """Return one row per move between memory and disk."""
    return [
        {name: line.get(name) for name in ("t", "worker", "key", "start", "finish")}
        | {
            "bytes": line.get("nbytes"),
            "disk_bytes": (line.get("measured") or {}).get("disk_bytes"),
        }
        for line in recording.of("spill")
    ]
