"""Colours that also colour-blind readers tell apart, given by rank.

The first colours are Okabe and Ito's (https://jfly.uni-koeln.de/color/), the later ones
widen their set. Vermillion is kept for what went wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Colours of ranks, in order. Each reads on white and on near-black.
RANKED: Final = (
    "#0072B2",  # blue
    "#E69F00",  # orange
    "#009E73",  # bluish green
    "#CC79A7",  # reddish purple
    "#56B4E9",  # sky blue
    "#B59F00",  # yellow, darkened to read on white
    "#7B61C4",  # violet
    "#8C6D46",  # brown
    "#66A182",  # sage
    "#D4879C",  # rose
)

#: What has no rank of its own.
OTHER: Final = "#737983"
#: The area below a curve of the first rank.
AREA: Final = "rgba(0, 114, 178, 0.18)"
#: What went wrong.
FAILURE: Final = "#D55E00"
#: What a task spends time on beside computing, in hues near those of Dask's dashboard.
ACTIVITY: Final = {"transfer": "#A23B5B", "deserialize": "#9A9FA8", "disk": "#C08A3E"}
#: Reference lines: limits, capacities, medians.
REFERENCE: Final = "#8A8F98"
#: What is there but not in use: presence of a worker, time between tasks.
BACKGROUND: Final = "rgba(138, 143, 152, 0.16)"


def by_rank(names: Iterable[str | None]) -> dict[str | None, str]:
    """Give each name the colour of its rank.

    Parameters
    ----------
    names : iterable of str or None
        Distinct names, the most important first.

    Returns
    -------
    dict
        A colour for as many as there are; the rest is missing and gets :data:`OTHER`.
    """
    return dict(zip(names, RANKED, strict=False))
