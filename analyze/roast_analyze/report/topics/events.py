"""The events that were logged with Dask, by topic and by time."""

# ruff: noqa: S608 - every query here is put together from this file's own text

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.listing import Listing, list_query
from roast_analyze.report.section import Section
from roast_analyze.report.topics.failures import beginning

if TYPE_CHECKING:
    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context

#: Maximum number of rows of the tables, and of characters of a payload.
EVENT_ROWS: Final = 100
TOPIC_ROWS: Final = 300
PAYLOAD_CHARACTERS: Final = 240
#: Dask logs an event in one topic right after the other: in that of a worker or a client, and
#: in "all" or "scheduler".
_SAME_SECONDS: Final = 0.01

_TOPICS: Final = (
    "SELECT topic, count(*) AS events, min(t) AS first_t, max(t) AS last_t FROM events "
    "GROUP BY topic"
)
#: An event of a worker names the worker in its payload, or only in its topic.
_EVENTS: Final = f"""
WITH logged AS (
    SELECT
        t, topic, payload::VARCHAR AS payload,
        coalesce(worker, if(contains(topic, '://'), topic, NULL)) AS worker,
        regexp_replace(payload::VARCHAR, ',"worker":"[^"]*"', '') AS content
    FROM events
), marked AS (
    SELECT *, coalesce(
        t - lag(t) OVER same > {_SAME_SECONDS} OR topic = lag(topic) OVER same, true
    )::INT AS is_new
    FROM logged WINDOW same AS (PARTITION BY worker, content ORDER BY t, topic)
), numbered AS (
    SELECT *, sum(is_new) OVER (PARTITION BY worker, content ORDER BY t, topic) AS number
    FROM marked
)
SELECT
    min(t) AS t, string_agg(topic, ', ' ORDER BY t, topic) AS topic, worker,
    {beginning("max(payload)", PAYLOAD_CHARACTERS)} AS payload
FROM numbered GROUP BY worker, content, number""".strip()
_TOPIC_COLUMNS: Final = columns("topic events first_t last_t")
_EVENT_COLUMNS: Final = columns("t topic worker payload")


@dataclass(frozen=True)
class Events:
    """The first events, each once, and the number of events by topic."""

    events: Listing
    topics: Listing


def query(trace: Session) -> Events:
    """List the events."""
    return Events(
        list_query(trace, "events", _EVENTS, "t, topic, worker, payload", EVENT_ROWS),
        list_query(trace, "events", _TOPICS, "events DESC, topic", TOPIC_ROWS),
    )


def section(found: Events, context: Context) -> Section:
    """Build the section."""
    section = Section("events", "Events", "Events")
    if not found.events.total:
        return context.absent(
            section,
            "No Dask event was recorded: there was none, or the settings excluded events.",
        )
    sentence = (
        f"{q.counted(found.events.total, 'event was', 'events were')} logged with Dask by the "
        "scheduler, the workers, the client or your code, in "
        f"{q.counted(found.topics.total, 'topic')}. An event in several topics is one row."
    )
    tables = context.tables(
        ("topics", "Events by topic", found.topics, _TOPIC_COLUMNS,
         "those with the most events"),
        ("events", "Events", found.events, _EVENT_COLUMNS, "the first"),
    )  # fmt: skip
    return replace(section, sentences=(sentence,), tables=tables)
