"""Fixtures that return the data, page and sections of a report of some records."""

from importlib import import_module
from inspect import signature

import pytest

from analyze.report.reading import plain
from roast_analyze.report import context, data, page
from roast_analyze.report.topics import tasks, timeline, workers

#: Sections whose topic has another name.
TOPICS = {"inside": "profile"}


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

    def build(*records, stop_t=10.0):
        return page.build(data.query(open_trace(*records, stop_t=stop_t)))

    return build


@pytest.fixture
def section(opened):
    """Build one section of the page, because querying all topics would take minutes."""

    def section(name, *records, stop_t=10.0):
        trace, about = opened(*records, stop_t=stop_t)
        if name == "workers":
            return workers.section(about)
        module = TOPICS.get(name, name.replace("-", "_"))
        topic = import_module(f"roast_analyze.report.topics.{module}")
        arguments = (trace, about)[: len(signature(topic.query).parameters)]
        more = {
            "timeline": lambda: timeline.Colors({}, {}),
            "tasks": dict,
            "memory": lambda: tasks.query(trace).prefixes.rows,
        }
        others = [more[name]()] if name in more else []
        return topic.section(topic.query(*arguments), about, *others)

    return section


@pytest.fixture
def sentences(section):
    """Return the sentences of a section as one text, with plain spaces."""

    def sentences(name, *records, stop_t=10.0):
        shown = filter(None, section(name, *records, stop_t=stop_t).sentences)
        return plain(" ".join(shown))

    return sentences
