"""Graphs: cost, layers, computations, restrictions."""

from nightly.recording import Recording, Row, once
from nightly.totals import grouped


def restrictions(recording: Recording) -> list[Row]:
    """Return one row per task with restricting annotations."""
    first: dict[str, dict] = {}
    for line in recording.of("task"):
        first.setdefault(line["key"], line)
    rows = []
    for key, line in first.items():
        said = line.get("annotations")
        if not isinstance(said, dict):
            continue
        workers = said.get("workers", said.get("restrictions"))
        row = {
            "workers": [workers] if isinstance(workers, str) else workers,
            "resources": said.get("resources"),
            "retries": said.get("retries"),
            "priority": said.get("priority"),
        }
        if any(value is not None for value in row.values()):
            others = said.get("allow_other_workers", said.get("loose_restrictions"))
            about = {"key": key, "prefix": line.get("prefix"), "task_group": line.get("group")}
            rows.append({**about, **row, "allow_other_workers": others})
    return rows


@once
def entered(recording: Recording) -> dict[str, list[dict]]:
    """Return the tasks by graph."""
    lines = (line for line in recording.of("task") if line.get("stimulus_id") is not None)
    return grouped(lines, lambda line: line["stimulus_id"])


@once
def sent(recording: Recording) -> list[dict]:
    """Return the graphs recorded by the client, with the matching one on the scheduler."""
    graphs = []
    for line in recording.of("graph"):
        later = [
            (task["t"], task.get("stimulus_id"))
            for task in recording.of("task")
            if task["key"] == line["key"] and task["t"] >= line["t"] - 0.1
        ]
        t, stimulus_id = min(later, default=(None, None), key=lambda pair: pair[0])
        graphs.append({**line, "stimulus_id": stimulus_id, "entered_t": t})
    return graphs


def graph_updates(recording: Recording) -> list[Row]:
    """Return one row per graph reported by Dask or by its tasks."""
    reported = grouped(
        (
            line
            for line in recording.of("event")
            if isinstance(line.get("payload"), dict)
            and line["payload"].get("action") == "update-graph"
        ),
        lambda line: line["payload"].get("stimulus_id"),
    )
    with_layers = [graph for graph in sent(recording) if graph["value"].get("layers")]
    layers = grouped(with_layers, lambda graph: graph["stimulus_id"])
    rows = []
    for stimulus_id in reported.keys() | entered(recording).keys():
        events, lines = reported.get(stimulus_id, []), entered(recording).get(stimulus_id, [])
        payload = next(iter(events), {"payload": {}})["payload"]
        metrics = payload.get("metrics") or {}
        topics = [line["topic"] for line in events if line["topic"] != "scheduler"]
        clients = [line["client"] for line in lines if line.get("client")]
        graphs = layers.get(stimulus_id, [])
        rows.append(
            {
                "stimulus_id": stimulus_id,
                "client": next(iter(clients), max(topics, default=None)),
                "t": min(line["t"] for line in lines or events),
                "start_t": metrics.get("start_timestamp_seconds"),
                "status": payload.get("status"),
                "tasks": metrics.get("tasks"),
                "new_tasks": metrics.get("new_tasks", len(lines) or None),
                "key_collisions": metrics.get("key_collisions"),
                "groups": len({line.get("group") for line in lines}) if lines else None,
                "edges": (
                    sum(len(line.get("dependencies") or ()) for line in lines)
                    if lines
                    else None
                ),
                "update_seconds": metrics.get("duration_seconds"),
                "materialization_seconds": metrics.get("materialization_duration_seconds"),
                "ordering_seconds": _positive(metrics.get("ordering_duration_seconds")),
                "state_seconds": _positive(
                    metrics.get("state_initialization_duration_seconds")
                ),
                "layers_sent": (
                    sum(
                        len(graph["value"]["layers"]) + graph["value"].get("more_layers", 0)
                        for graph in graphs
                    )
                    if graphs
                    else None
                ),
                "sent_t": min((graph["t"] for graph in graphs), default=None),
                "collections": (
                    [name for graph in graphs for name in graph["value"]["collections"]]
                    if graphs
                    else None
                ),
                "graph_bytes": max(
                    (
                        line["nbytes"]
                        for line in recording.of("graph_update")
                        if line.get("stimulus_id") == stimulus_id
                    ),
                    default=None,
                ),
            }
        )
    return rows


def _positive(seconds: float | None) -> float | None:
    return None if seconds is None else abs(seconds)


def graph_layers(recording: Recording) -> list[Row]:
    """Return one row per graph, stage and layer."""
    rows = [
        {
            "stimulus_id": graph["stimulus_id"],
            "stage": "sent",
            "layer": layer["name"],
            "layer_type": layer["type"],
            "tasks": layer.get("tasks"),
            "fused": layer.get("fused"),
            "client": graph["client"],
            "t": graph["t"],
            "task_bytes": None,
        }
        for graph in sent(recording)
        for layer in graph["value"].get("layers", ())
    ]
    for stimulus_id, lines in entered(recording).items():
        for group, of_group in grouped(lines, lambda line: line.get("group")).items():
            rows.append(
                {
                    "stimulus_id": stimulus_id,
                    "stage": "scheduled",
                    "layer": group,
                    "layer_type": of_group[0].get("prefix"),
                    "tasks": len(of_group),
                    "fused": None,
                    "client": of_group[0].get("client"),
                    "t": min(line["t"] for line in of_group),
                    # Extrapolated from the examined tasks.
                    "task_bytes": next(
                        (
                            round(part["nbytes"] / part["examined"] * len(of_group))
                            for line in recording.of("graph_update")
                            for part in (line.get("value") or {}).get("groups", ())
                            if (line.get("stimulus_id"), part["group"]) == (stimulus_id, group)
                        ),
                        None,
                    ),
                }
            )
    return rows


def computations(recording: Recording) -> list[Row]:
    """Return one row per computation: a period in which the scheduler had work."""
    begun: dict[str, dict] = {}
    for line in recording.of("computation"):
        begun.setdefault(line["name"], line)
    entered: dict[str, float] = {}
    for line in recording.of("task"):
        stimulus_id = line.get("stimulus_id")
        entered[stimulus_id] = min(line["t"], entered.get(stimulus_id, line["t"]))

    def start(line: dict) -> float:
        return min(line["t"], entered.get(line.get("stimulus_id"), line["t"]))

    starts = sorted((start(line), name) for name, line in begun.items())

    def at(t: float | None) -> str | None:
        return max((start for start in starts if t is not None and start[0] <= t),
                   default=(None, None))[1]  # fmt: skip

    of_tasks = grouped(
        (
            line
            for line in recording.of("task")
            if line.get("stimulus_id") is not None and at(line["t"])
        ),
        lambda line: at(line["t"]),
    )
    codes = [
        (at(graph["entered_t"]), graph["t"], graph["value"]["code"])
        for graph in sent(recording)
        if "code" in graph["value"]
    ] + [
        (line["name"], line["t"], code)
        for line in recording.of("computation")
        for code in (line.get("value") or {}).get("codes", ())
    ]
    texts = {code["digest"]: code for _, _, code in codes if "text" in code}
    rows = []
    for name, line in begun.items():
        mine = [(t, code) for computation, t, code in codes if computation == name]
        first = min(mine, key=lambda pair: pair[0])[1] if mine else {}
        whole = texts.get(first.get("digest"))
        written = None
        if whole:
            number = first["line_number"] - whole["first_line"]
            written = whole["text"].split("\n")[number].strip(" ")
        pieces = {texts[code["digest"]]["text"] for _, code in mine}
        rows.append(
            {
                "computation": name,
                "t": start(line),
                "client": line.get("client"),
                "stimulus_id": line.get("stimulus_id"),
                "graphs": len({task["stimulus_id"] for task in of_tasks.get(name, ())}),
                "tasks": len(of_tasks.get(name, ())),
                "filename": first.get("filename"),
                "line_number": first.get("line_number"),
                "line": written,
                "code": "\n\n".join(pieces) if pieces else None,
            }
        )
    return rows
