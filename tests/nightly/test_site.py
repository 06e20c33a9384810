"""The documentation site builds without a warning, and its pages are accessible."""

import subprocess
import sys
from pathlib import Path

import pytest

from browser.pages import violations

ROOT = Path(__file__).parents[2]
PAGES = [
    "index", "tutorial/slow-file", "how-to/questions", "how-to/record", "reference/commands",
    "reference/python", "explanation/design", "explanation/costs", "search",
]  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Build the site; a warning, such as a link without a target, is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--quiet", "docs", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.mark.browser
@pytest.mark.parametrize("colors", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 400])
def test_pages_are_accessible_and_fit(site, chromium, width, colors):
    with chromium.new_context(
        offline=True, viewport={"width": width, "height": 900}, color_scheme=colors
    ) as context:
        page = context.new_page()
        requests = []
        page.on("request", lambda request: requests.append(request.url))
        for name in PAGES:
            page.goto((site / f"{name}.html").as_uri())

            assert violations(page) == [], name
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
