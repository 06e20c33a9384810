"""What a page is wrapped in: templates, styles, scripts, and what may run in it.

A page loads nothing: its content security policy names the scripts that may run by their
hashes, so that even markup that got past the escaping could not act.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Sequence

_LIBRARY: Final = "plotly-cartesian.min.js.gz"


@dataclass(frozen=True)
class Shell:
    """What a page is wrapped in.

    Parameters
    ----------
    style : Markup
        How it looks.
    first_script : Markup
        What runs when the first section is there, while the browser still reads the rest.
    script : Markup
        What runs at the end.
    policy : str
        What may run in it.
    plotly_gzip_base64 : Markup
    """

    style: Markup
    first_script: Markup
    script: Markup
    policy: str
    plotly_gzip_base64: Markup


def shell(styles: Sequence[str], first: Sequence[str], scripts: Sequence[str]) -> Shell:
    """Put together what a page is wrapped in.

    Parameters
    ----------
    styles, first, scripts : sequence of str
        Names of assets, in order: styles, the scripts behind the first section, and those at
        the end.
    """
    style, first_script, script = ("".join(map(_asset, of)) for of in (styles, first, scripts))
    library, library_hash = _plotly()
    hashes = (_sha256(first_script), _sha256(script), library_hash)
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return Shell(
        style=Markup(style),  # noqa: S704 - files of this package
        first_script=Markup(first_script),  # noqa: S704 - files of this package
        script=Markup(script),  # noqa: S704 - files of this package
        policy=(
            f"default-src 'none'; script-src {allowed}; "
            "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
            "form-action 'none'"
        ),
        plotly_gzip_base64=Markup(library),  # noqa: S704 - base64
    )


@cache
def templates() -> Environment:
    """Give the templates of the pages."""
    return Environment(
        loader=PackageLoader("roast_analyze.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def roast_version() -> str:
    """Give the version of what makes the page."""
    try:
        return version("roast-trace")
    except PackageNotFoundError:
        return "(not installed)"


@cache
def _asset(name: str) -> str:
    return files("roast_analyze.report").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _plotly() -> tuple[str, str]:
    """Give plotly.js as base64 of gzip, and the hash under which it may run.

    It is the build with the charts that have x and y: a third of the one in plotly's Python
    package. ``make plotly`` renews it.
    """
    packed = files("roast_analyze.report").joinpath("assets", _LIBRARY).read_bytes()
    script = gzip.decompress(packed).decode()
    return base64.b64encode(packed).decode("ascii"), _sha256(script)


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
