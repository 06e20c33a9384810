"""The data of a report of a trace of some records, and its sections as plain text."""

import base64
import gzip
import json
from html.parser import HTMLParser

import pytest

from roast_analyze.report import context, data, page
from roast_analyze.report.topics import (
    activities,
    chunks,
    core_time,
    critical_path,
    environment,
    failures,
    loss,
    memory,
    profile,
    scheduler,
    spans,
    tasks,
    timeline,
    transfers,
    what_if,
    workers,
)

#: Build one section only: querying all topics for each test would take minutes.
SECTIONS = {
    "core-time": lambda trace, about: core_time.section(core_time.query(trace), about),
    "critical-path": lambda trace, about: critical_path.section(
        critical_path.query(trace), about
    ),
    "timeline": lambda trace, about: timeline.section(
        timeline.query(trace, about), about, timeline.Colors({}, {})
    ),
    "chunks": lambda trace, about: chunks.section(chunks.query(trace, about), about),
    "workers": lambda _, about: workers.section(about),
    "tasks": lambda trace, about: tasks.section(tasks.query(trace), about, {}),
    "activities": lambda trace, about: activities.section(
        activities.query(trace, about), about
    ),
    "spans": lambda trace, about: spans.section(spans.query(trace), about),
    "inside": lambda trace, about: profile.section(profile.query(trace), about),
    "memory": lambda trace, about: memory.section(
        transfers.query(trace, about), about, tasks.query(trace).prefixes.rows
    ),
    "scheduler": lambda trace, about: scheduler.section(scheduler.query(trace, about), about),
    "what-if": lambda trace, about: what_if.section(what_if.query(trace, about), about),
    "failures": lambda trace, about: failures.section(failures.query(trace), about),
    "environment": lambda trace, about: environment.section(environment.query(trace), about),
    "loss": lambda trace, about: loss.section(loss.query(trace), about),
}


@pytest.fixture
def opened(open_trace):
    """Open a trace of some records and query its context."""

    def opened(*records, stop_t=10.0):
        trace = open_trace(*records, stop_t=stop_t)
        return trace, context.query(trace)

    return opened


@pytest.fixture
def build(open_trace):
    """Build the page of a trace of some records."""

    def build(*records, stop_t=10.0, title=None):
        return page.build(data.query(open_trace(*records, stop_t=stop_t)), title=title)

    return build


@pytest.fixture
def section(opened):
    """Build a section of the page of a trace of some records."""

    def section(name, *records, stop_t=10.0):
        return SECTIONS[name](*opened(*records, stop_t=stop_t))

    return section


@pytest.fixture
def sentences(section):
    """Return the sentences of a section as one text, with plain spaces."""

    def sentences(name, *records, stop_t=10.0):
        text = " ".join(section(name, *records, stop_t=stop_t).sentences)
        return text.replace("\N{NO-BREAK SPACE}", " ")

    return sentences


@pytest.fixture
def unpack():
    """Decode packed JSON."""
    return lambda packed: json.loads(gzip.decompress(base64.b64decode(packed)))


class Elements(HTMLParser):
    """Names of the elements of a page, its handlers, its scripts and its heading."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.scripts: list[tuple[dict, str]] = []
        self.handlers: list[str] = []
        self.heading = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, text):
        if self.lasttag == "script" and self.scripts and not self.scripts[-1][1]:
            self.scripts[-1] = (self.scripts[-1][0], text)
        if "h1" in self.names and "nav" not in self.names:
            self.heading += text


@pytest.fixture
def parsed():
    """Parse a page: see :class:`Elements`."""
    return Elements
