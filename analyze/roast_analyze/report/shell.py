"""The pages and what they share: template, styles, scripts and content security policy.

A page loads no other files. Its policy allows only the scripts whose hashes it lists, so that
scripts in markup that was not escaped cannot run.
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

from roast_analyze.report.public_sql import public_sql
from roast_analyze.report.scripts import asset, bundle

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from roast_analyze.report.section import Section
    from roast_analyze.report.topics.verdict import Verdict

_TEMPLATES: Final = Environment(
    loader=PackageLoader("roast_analyze.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["public_sql"] = public_sql
_PLOTLY: Final = "plotly-cartesian.min.js.gz"
#: Styles, the script that runs after the first section, and the one that runs at the end: of
#: a report, and of other pages, which have no canvases.
_REPORT: Final = (
    ("page/page.css", "timeline/timeline.css", "flame/flame.css"),
    "timeline/main.js",
    "report.js",
)
_OTHERS: Final = (
    ("page/page.css", "page/comparison.css"),
    "shared/scripted.js",
    "comparison.js",
)


@dataclass(frozen=True)
class Page:
    """The context of the template ``page.html.j2``, which computes nothing."""

    title: str
    #: Subject of the page, below the title.
    about: Markup
    made_with: str
    command: str
    sections: Sequence[Section]
    #: Only of a report; the first section of other pages is their verdict.
    trace_name: str = ""
    verdict: Verdict | None = None
    #: Address of the page with the list of runs, if there is one.
    home: str = ""

    @property
    def shell(self) -> Shell:
        """Styles, scripts and policy."""
        # The other pages have neither timeline nor flame graph.
        return shell(*(_REPORT if self.verdict else _OTHERS))


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
    # All three are files of this package.
    style, first, last = map(Markup, ("\n".join(map(asset, styles)), *scripts))
    return Shell(
        style=style,
        first_script=first,
        script=last,
        policy=(
            f"default-src 'none'; script-src {allowed_scripts(run)}; "
            "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
            "form-action 'none'"
        ),
        plotly_gzip_base64=Markup(base64.b64encode(plotly).decode("ascii")),  # noqa: S704 - base64
    )


def allowed_scripts(scripts: Iterable[str]) -> str:
    """Return the sources of a content security policy that allow some inline scripts."""
    hashes = (
        base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in scripts
    )
    return " ".join(f"'sha256-{one}'" for one in hashes)


def render(page: Page) -> str:
    """Render a page as HTML."""
    return _TEMPLATES.get_template("page.html.j2").render(page=page)


def roast_version() -> str:
    """Return the name and version of the installed distribution."""
    try:
        return f"roast {version('roast-trace')}"
    except PackageNotFoundError:
        return "roast (not installed)"
