"""Spans, and the span in which a task was submitted.

A task group belongs to the span of its first task. Dask overwrites the annotation of its other
tasks before plugins are called, so that they are observed before.
"""

from __future__ import annotations

from typing import Any, Final

from roast_recorder.probes import SchedulerProbe
from roast_recorder.scheduler.wire_format import plain

#: The annotation of tasks that were submitted outside of spans; Dask has none for them.
OUTSIDE_SPANS: Final = {"name": ("default",)}


class OnScheduler(SchedulerProbe):
    """Record spans with their first task, and note the spans of tasks for their records."""

    def _install(self) -> None:
        core = self.core
        self._seen: set[str] = set()
        if "task" in core.kinds:
            with core.tap.source("task", "span"):
                spans = core.scheduler.extensions["spans"]
                on_tasks, names = self._on_observe_tasks, ("tss",)
                core.tap.method("task", spans, "observe_tasks", on_tasks, positional=names)

    def on_span(self, span_id: str | None) -> None:
        """Record a span and its parents, each once."""
        extension = self.core.scheduler.extensions.get("spans")
        while span_id is not None and span_id not in self._seen:
            self._seen.add(span_id)
            span = extension.spans.get(span_id) if extension else None
            parent = span.parent.id if span and span.parent else None
            if span is not None:
                about = {"span_id": span_id, "span_name": span.name, "parent_id": parent}
                self.core.record("span", **about)
            span_id = parent

    def _on_observe_tasks(self, message: dict[str, Any]) -> None:
        """Note the tasks of a graph that were submitted in another span than their group's."""
        spans = self.core.scheduler.extensions["spans"].spans
        values = self.core.tasks.values = {}
        filed: dict[Any, str | None] = {}
        group: Any = None
        submitted = annotation = None
        for task in message["tss"]:
            annotations = task.annotations
            span = annotations.get("span") if annotations else None
            if task.group is not group or span is not submitted:  # usually as before
                group, submitted = task.group, span
                span_id = _span_id(submitted)
                if group not in filed:
                    first = spans.get(group.span_id)
                    filed[group] = _span_id(first.annotation) if first else span_id
                annotation = None
                if filed[group] != span_id:
                    name = plain(submitted) if span_id else OUTSIDE_SPANS
                    annotation = {"submitted_span": name}
            if annotation:
                values[task.key] = annotation


def _span_id(annotation: dict[str, Any] | None) -> str | None:
    """Return the identity of the innermost span of an annotation; None outside of spans."""
    ids = annotation.get("ids") if isinstance(annotation, dict) else None
    return ids[-1] if ids else None
