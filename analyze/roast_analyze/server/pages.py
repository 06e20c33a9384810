"""The pages of the server: the list, a run that is live, and the wait for a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from roast_analyze.report.scripts import asset, bundle
from roast_analyze.report.shell import allowed_scripts
from roast_analyze.server.listing import COLUMNS

_TEMPLATES: Final = Environment(
    loader=PackageLoader("roast_analyze.server"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_STYLES: Final = ("page/page.css", "server/server.css")


@dataclass(frozen=True)
class Html:
    """A page, and the policy of its scripts."""

    text: str
    policy: str


def policy(scripts: str, connections: str) -> str:
    """Return a content security policy: no other server is asked for anything."""
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; "
        f"img-src data: blob:; connect-src {connections}; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'self'"
    )


#: Policy of a report, in addition to its own, which lists its scripts.
REPORT_POLICY: Final = policy("'unsafe-inline'", "'none'")


def list_page(name: str) -> Html:
    """Return the page with the list of the runs of a folder or store."""
    return _page("list.html.j2", "server/list.js", name=name, columns=COLUMNS)


def live_page(title: str, run_id: str) -> Html:
    """Return the page of a run that is being recorded."""
    return _page("live.html.j2", "server/live.js", title=title, run_id=run_id)


def waiting_page(title: str, run_id: str) -> Html:
    """Return the page that is shown until a report is written."""
    return _page("waiting.html.j2", "server/waiting.js", title=title, run_id=run_id)


def error_page(title: str, text: str) -> Html:
    """Return a page with an error."""
    return _page("error.html.j2", "server/error.js", title=title, text=text)


def _page(template: str, script: str, **context: object) -> Html:
    style = Markup("\n".join(map(asset, _STYLES)))  # noqa: S704 - files of this package
    code = bundle(script)
    text = _TEMPLATES.get_template(template).render(
        style=style,
        script=Markup(code),  # noqa: S704 - a file of this package
        **context,
    )
    return Html(text, policy(allowed_scripts([code]), "'self'"))
