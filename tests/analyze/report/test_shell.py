"""Scripts of a page are bundled, and are the only ones that its policy allows."""

import base64
import gzip
import hashlib
import re

import pytest
from plotly.offline import get_plotlyjs_version

from roast_analyze.report import scripts
from roast_analyze.report.shell import shell


def test_the_policy_allows_the_bundles_and_plotly_by_their_hashes():
    page = shell(("page/page.css",), "timeline/main.js", "report.js")

    plotly = gzip.decompress(base64.b64decode(page.plotly_gzip_base64))
    inline = [page.first_script.encode(), page.script.encode(), plotly]
    hashes = [base64.b64encode(hashlib.sha256(one).digest()).decode() for one in inline]
    assert re.findall(r"'sha256-([^']+)'", page.policy) == hashes
    assert "unsafe" not in page.policy.replace("style-src 'unsafe-inline'", "")


def test_plotly_js_has_the_major_version_that_figures_are_made_for():
    page = shell((), "shared/scripted.js", "comparison.js")

    script = gzip.decompress(base64.b64decode(page.plotly_gzip_base64)).decode()
    banner = re.search(r"plotly\.js \(cartesian - minified\) v(\d+)\.", script)
    assert banner[1] == get_plotlyjs_version().partition(".")[0]


@pytest.fixture
def bundle(monkeypatch):
    """Bundle ``main.js`` of some modules."""

    def bundle(**modules: str) -> str:
        monkeypatch.setattr(scripts, "asset", lambda name: modules[name.removesuffix(".js")])
        return scripts.bundle.__wrapped__("main.js")

    return bundle


def test_modules_run_once_each_in_the_order_of_imports(bundle):
    script = bundle(
        main='import { a } from "./a.js";\nimport "./b.js";\na();\n',
        a='import { b as c } from "./b.js";\nexport const a = () => c;\n',
        b="export const b = 1;\n",
    )

    assert script.split("\n") == [
        '"use strict";', "(() => {",
        "const module0 = (() => {", "const b = 1;", "", "return { b };", "})();",
        "const module1 = (() => {", "const { b: c } = module0;", "const a = () => c;", "",
        "return { a };", "})();",
        "const module2 = (() => {", "const { a } = module1;", "", "a();", "",
        "return {  };", "})();", "})();", "",
    ]  # fmt: skip


def test_a_circular_import_is_an_error(bundle):
    with pytest.raises(ValueError, match=r"circular import: main\.js → a\.js → main\.js"):
        bundle(main='import "./a.js";\n', a='import "./main.js";\n')


@pytest.mark.parametrize(
    "line",
    ["export default 1;", 'import d from "./a.js";', "export { x };", "export let x;"],
)
def test_an_unsupported_line_is_an_error(bundle, line):
    with pytest.raises(ValueError, match=r"cannot bundle .* unsupported"):
        bundle(main=f"{line}\n")
