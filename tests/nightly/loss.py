"""Ways in which a trace is not whole."""

import zlib
from collections import Counter
from collections.abc import Iterator

from nightly.processes import extent
from nightly.recording import Recording, Row, content
from nightly.totals import known, total

#: Reason for records that are not missing, but surplus.
SURPLUS = "more records than were written"


def loss(recording: Recording) -> list[Row]:
    """Return the losses of a trace."""
    trailer = next(iter(recording.of("trailer")), None)
    end_t = extent(recording)[1]
    rows = []
    if not recording.of("header"):
        detail = "the recorder's version and settings are unknown"
        rows.append(_loss("no header", None, detail, end_t))
    if trailer is None:
        unwritten = "the trace could not be written"
        if any((lost["reason"] or "").startswith(unwritten) for lost in recording.of("loss")):
            detail = (
                "the trailer could probably not be written either; later records are unknown"
            )
        else:
            detail = (
                "the recording did not end cleanly: it was killed, the "
                "scheduler died, its plugin was removed, or it is still running; "
                "later records are unknown"
            )
        rows.append(_loss("no trailer", None, detail, end_t))
    else:
        rows += _difference(trailer, recording)
        rows += _change(trailer, recording)
    for job in recording.of("import"):
        modules = job["value"]["modules"] if job["name"] == "darshan" else {}
        if partial := [name for name, facts in modules.items() if facts.get("partial")]:
            detail = (
                f"{job['filename']}: Darshan reached its limit of records or memory in "
                f"{', '.join(partial)}, so files opened later are missing"
            )
            rows.append(_loss("partial Darshan log", None, detail, job["t"]))
    return rows + list(_dropped(trailer or {}, recording))


def _loss(reason: str, records: int | None, detail: str, t: float) -> Row:
    return {"reason": reason, "records": records, "detail": detail, "t": t}


def _dropped(trailer: dict, recording: Recording) -> Iterator[Row]:
    """Return the recorded losses, and further ones counted by the trailer."""
    said = recording.of("loss")
    for line in said:
        of_what = known([line.get("record_kind"), line.get("detail")])
        reason = line.get("reason") or "dropped while recording"
        yield _loss(reason, line.get("records"), ": ".join(of_what), line["t"])
    for kind, records in trailer.get("dropped_by_kind", {}).items():
        explained = total(n["records"] for n in said if n.get("record_kind") == kind) or 0
        if records > explained:
            reason = "dropped while recording"
            yield _loss(reason, records - explained, kind, trailer["t"])


def _difference(trailer: dict, recording: Recording) -> Iterator[Row]:
    """Compare the counts of the trailer with the records."""
    said = Counter({"trailer": 1, **trailer["records_by_kind"]})
    for line in recording.of("import"):
        said.update({"import": 1, **line["records_by_kind"]})
    kinds = sorted({line["kind"] for line in recording.lines if line is not trailer} | {*said})
    held = {kind: len(recording.of(kind)) for kind in kinds}
    less = {kind: said.get(kind, 0) - n for kind, n in held.items() if n < said.get(kind, 0)}
    more = {kind: n - said.get(kind, 0) for kind, n in held.items() if n > said.get(kind, 0)}
    if less:
        detail = f"the trailer counts more records than the file has: {_counts(less)}"
        yield _loss("records missing", sum(less.values()), detail, trailer["t"])
    if more:
        about = "the file has more records than its trailer counts: "
        if "header" in more:
            about = f"the file contains {more['header'] + 1} traces; surplus records: "
        yield _loss(SURPLUS, sum(more.values()), about + _counts(more), extent(recording)[1])


def _change(trailer: dict, recording: Recording) -> Iterator[Row]:
    """Compare the checksum of the trailer with the content."""
    # Imports append further checksums after it.
    before, _, _ = content(recording.path).partition(b',"crc32":')
    headers = recording.of("header")
    if "crc32" not in trailer:
        version = headers[0]["schema_version"] if headers else "1.0"
        if tuple(map(int, version.split("."))) >= (2, 1):
            detail = "the trailer has no checksum: any value may have changed"
            yield _loss("changed content", None, detail, extent(recording)[1])
    elif zlib.crc32(before) != trailer["crc32"]:
        detail = "the checksum in the trailer does not match: any value may have changed"
        yield _loss("changed content", None, detail, extent(recording)[1])


def _counts(records: dict[str, int]) -> str:
    return ", ".join(f"{kind} {n}" for kind, n in records.items())
