"""Templates, styles, scripts and content security policy of the pages.

A page loads nothing. Its policy allows only the scripts whose hashes it lists, so that markup
that got past the escaping could not run.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from roast_analyze.report.scripts import bundle, compacted

_PLOTLY: Final = "plotly-cartesian.min.js.gz"


@dataclass(frozen=True)
class Shell:
    """Styles, scripts and policy of a page."""

    style: Markup
    #: Script that runs after the first section, while the browser still reads the rest.
    first_script: Markup
    #: Script that runs at the end.
    script: Markup
    policy: str
    #: plotly.js.
    plotly_gzip_base64: Markup


@cache
def shell(styles: tuple[str, ...], first_script: str, script: str) -> Shell:
    """Build the styles, scripts and policy of a page from files of ``assets``.

    The modules ``first_script`` and ``script`` run with what they import.
    """
    scripts = [bundle(first_script), bundle(script)]
    # The build with cartesian charts only is a third of the size of the one in plotly's
    # Python package. `make plotly` updates it.
    plotly = files("roast_analyze.report").joinpath("assets", _PLOTLY).read_bytes()
    run = (*scripts, gzip.decompress(plotly).decode())
    hashes = (base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in run)
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    # All three are files of this package.
    style, first, last = map(Markup, ("\n".join(map(compacted, styles)), *scripts))
    return Shell(
        style=style,
        first_script=first,
        script=last,
        policy=(
            f"default-src 'none'; script-src {allowed}; "
            "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
            "form-action 'none'"
        ),
        plotly_gzip_base64=Markup(base64.b64encode(plotly).decode("ascii")),  # noqa: S704 - base64
    )


@cache
def templates() -> Environment:
    """Return the Jinja environment of the pages."""
    return Environment(
        loader=PackageLoader("roast_analyze.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def roast_version() -> str:
    """Return the version of the installed distribution."""
    try:
        return version("roast-trace")
    except PackageNotFoundError:
        return "(not installed)"
