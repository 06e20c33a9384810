"""Configuration of Sphinx for the documentation site: ``make docs``."""

from importlib import metadata

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
