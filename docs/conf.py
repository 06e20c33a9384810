"""Configuration of Sphinx for the documentation site: ``make docs``."""

from __future__ import annotations

import re
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "roast"
copyright = "the roast developers"  # noqa: A001 - the name that Sphinx reads
version = release = metadata.version("roast-trace")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

# Links to headings are checked as links to pages are.
myst_heading_anchors = 4
myst_links_external_new_tab = False

smartquotes = False  # they would change options such as --html

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # NumPy docstrings have the types
napoleon_google_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = "roast"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["accessibility.js"]
html_show_sphinx = False
html_copy_source = False
# Both have a contrast of at least 7 : 1 on the background of code.
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

# Pygments does not know the parameters of DuckDB, such as $seconds.
suppress_warnings = ["misc.highlighting_failure"]

copybutton_exclude = ".linenos, .gp, .go"


def setup(app: Sphinx) -> None:
    """Register the event handler of this site."""
    app.connect("source-read", add_toctree)


def add_toctree(_app: Sphinx, name: str, source: list[str]) -> None:
    """Make the pages that an index page links to its contents, in their order.

    A ``toctree`` in the page itself would be shown as code where Markdown is read unbuilt.
    """
    if name.rpartition("/")[2] == "index":
        pages = dict.fromkeys(re.findall(r"\]\(([\w/-]+)\.md\)", source[0]))
        source[0] += "\n".join(["\n```{toctree}", ":hidden:", "", *pages, "```", ""])
