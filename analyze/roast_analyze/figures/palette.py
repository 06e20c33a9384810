"""Colors by rank that color-blind readers can distinguish.

The first colors are those of Okabe and Ito (https://jfly.uni-koeln.de/color/), the later ones
extend their set. Vermilion is reserved for failures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Colors of ranks, in order. Each has enough contrast on white and on near-black.
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

#: Color of everything without a rank.
OTHER: Final = "#737983"
#: The area below a curve of the first rank.
AREA: Final = "rgba(0, 114, 178, 0.18)"
#: Failures.
FAILURE: Final = "#D55E00"
#: Activities of a task other than computing, in hues similar to Dask's dashboard.
ACTIVITY: Final = {"transfer": "#A23B5B", "deserialize": "#9A9FA8", "disk": "#C08A3E"}
#: Reference lines: limits, capacities, medians.
REFERENCE: Final = "#8A8F98"
#: Idle time.
BACKGROUND: Final = "rgba(138, 143, 152, 0.16)"


def by_rank(names: Iterable[str | None]) -> dict[str | None, str]:
    """Assign distinct names, the most important first, the colors of their ranks.

    Names beyond the palette are missing and get :data:`OTHER`.
    """
    return dict(zip(names, RANKED, strict=False))
