"""Imported files of other tools."""

from nightly.recording import Recording, Row


def imports(recording: Recording) -> list[Row]:
    """Return one row per file."""
    return [
        {
            "tool": line["name"],
            "filename": line["filename"],
            "records": sum(line["records_by_kind"].values()),
            "imported_t": line["value"]["imported_t"],
            "start_t": line.get("start_t"),
            "stop_t": line.get("stop_t"),
            "worker": line.get("worker"),
            "pid": line.get("pid"),
            "versions": line.get("versions"),
            "facts": line["value"],
            "source": line["source"],
            "segment": 1,
        }
        for line in recording.of("import")
    ]
