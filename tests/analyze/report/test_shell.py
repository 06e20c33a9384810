import base64
import gzip
import hashlib
import re

from plotly.offline import get_plotlyjs_version

from roast_analyze.report.shell import shell


def allowed(policy):
    return re.findall(r"'(sha256-[^']+)'", policy)


def sha256(script):
    return "sha256-" + base64.b64encode(hashlib.sha256(script).digest()).decode()


def test_scripts_are_joined_in_order_and_allowed_by_their_hashes():
    made = shell(("report.css",), ("packed.js", "canvases.js"), ("report.js",))

    plotly = gzip.decompress(base64.b64decode(made.plotly_gzip_base64))
    scripts = [made.first_script.encode(), made.script.encode(), plotly]
    assert allowed(made.policy) == [sha256(script) for script in scripts]
    assert made.first_script.index("unpackedText") < made.first_script.index("sizedContext")
    assert "unsafe" not in made.policy.replace("style-src 'unsafe-inline'", "")


def test_plotly_js_is_the_one_that_figures_are_made_for():
    made = shell((), (), ())

    script = gzip.decompress(base64.b64decode(made.plotly_gzip_base64)).decode()
    banner = re.search(r"plotly\.js \(cartesian - minified\) v(\d+)\.", script)
    assert banner[1] == get_plotlyjs_version().partition(".")[0]
