"""Words and colors of the uses of view ``core_time``, in the order in which they are shown."""

from __future__ import annotations

from typing import Final, NamedTuple

from roast_analyze.figures import palette


class Use(NamedTuple):
    """Words that follow the category, and a color."""

    words: str
    color: str


#: By the use of the view.
USES: Final = {
    "kept result": Use("computing, result kept", palette.RANKED[0]),
    "unfinished attempt": Use("computing, not finished", palette.RANKED[4]),
    "failed attempt": Use("computing, attempt failed", palette.FAILURE),
    "recomputed result": Use("computing, result lost and computed again", "#E07B39"),
    "lost attempt": Use("computing, attempt lost with its worker", "#B5432A"),
    "rescheduled attempt": Use("computing, attempt rescheduled", "#C98A5E"),
    "cancelled attempt": Use("computing, attempt cancelled", "#EDA27C"),
    "deserialize": Use("deserialization", palette.ACTIVITY["deserialize"]),
    "disk": Use("disk", palette.ACTIVITY["disk"]),
    "transfer": Use("waiting for a transfer", palette.ACTIVITY["transfer"]),
    "dispatch": Use("waiting for an assigned task to begin", palette.RANKED[6]),
    "paused worker": Use("worker paused", palette.RANKED[7]),
    "scheduler": Use("waiting for the scheduler", palette.RANKED[3]),
    "imbalance": Use("tasks queued on other workers", palette.RANKED[1]),
    "dependencies": Use("waiting for dependencies", palette.RANKED[2]),
    "tail": Use("fewer tasks left than threads", palette.RANKED[5]),
    "joining worker": Use("worker has just joined", palette.RANKED[9]),
    "leaving worker": Use("worker is leaving", palette.RANKED[8]),
    "before first graph": Use("before the first graph", "#B9BDC5"),
    "between graphs": Use("between graphs", "#5F6672"),
    "after last result": Use("after the last result", "#D2D5DA"),
    "actor method": Use("a method of an actor computed (sampled)", "#8C9A5B"),
    "seceded task": Use("unknown: a seceded task computed or waited", "#7A8290"),
    "silent worker": Use("unknown: worker was silent", "#4C515A"),
}
