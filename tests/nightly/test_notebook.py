"""The example notebook, executed by nbclient and opened in JupyterLab in Chromium."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("jupyterlab")

NOTEBOOK = Path(__file__).parents[2] / "examples" / "record_a_cell.ipynb"
PLOTLY = "application/vnd.plotly.v1+json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder for the notebook and for the user's files of Jupyter."""
    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTERLAB_WORKSPACES_DIR"):
            patch.setenv(name, str(folder / ".jupyter"))
        patch.setenv("JUPYTERLAB_SETTINGS_DIR", str(folder / ".settings"))
        yield folder


@pytest.fixture(scope="module")
def executed(folder):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not [cell for cell in code if cell.outputs or cell.execution_count]
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute(
        env=os.environ.copy()
    )
    # JupyterLab renders the outputs of a signed notebook.
    nbformat.sign.NotebookNotary().sign(notebook)
    nbformat.write(notebook, folder / NOTEBOOK.name)
    return [cell.outputs for cell in code]


def shown(outputs, kind):
    found = [output["data"][kind] for output in outputs if kind in output.get("data", {})]
    return (
        [html.replace("\N{NO-BREAK SPACE}", " ") for html in found] if "html" in kind else found
    )


def test_outputs_of_the_cells(executed):
    _, recorded, findings, flame, predictions, second, comparison, _ = executed

    [page] = shown(recorded, "text/html")
    assert "21 tasks in" in page
    [timeline] = shown(recorded, PLOTLY)
    assert [bars["name"] for bars in timeline["data"]] == ["simulate"]
    [page] = shown(findings, "text/html")
    assert page.startswith("<p>Findings:")
    assert len(shown(flame, PLOTLY)) == 1
    assert "wall time" in shown(predictions, "text/html")[0]
    assert "60 tasks in" in shown(second, "text/html")[0]
    assert "compared with first.jsonl.zst" in shown(comparison, "text/html")[0]
    # Nothing is loaded from the network, and every output has plain text.
    for outputs in executed:
        assert "://" not in json.dumps(shown(outputs, "text/html")).replace("tcp://", "")
        rich = [output for output in outputs if "data" in output]
        assert all(output["data"]["text/plain"] for output in rich)


@pytest.fixture(scope="module")
def jupyterlab(executed, folder):  # noqa: ARG001 - it writes the notebook
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    options = ["--no-browser", "--ip=127.0.0.1", f"--port={port}", "--IdentityProvider.token="]
    options += ["--allow-root"] if os.geteuid() == 0 else []
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options], cwd=folder, stdout=log, stderr=log
        )
        try:
            until = time.monotonic() + 120
            while True:
                try:
                    urllib.request.urlopen(f"{address}/api", timeout=5).close()
                    break
                except OSError:
                    assert time.monotonic() < until, (folder / "server.log").read_text()
                    time.sleep(0.5)
            yield address
        finally:
            server.terminate()
            server.wait(30)


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_jupyterlab_renders_figures_and_tables(jupyterlab, folder, chromium, theme):
    settings = folder / ".settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True, exist_ok=True)
    for name, value in {"themes": {"theme": f"JupyterLab {theme}"},
                        "notification": {"fetchNews": "false"}}.items():  # fmt: skip
        (settings / f"{name}.jupyterlab-settings").write_text(json.dumps(value))
    page = chromium.new_page(viewport={"width": 1300, "height": 3400})
    requests = []
    page.on("request", lambda request: requests.append(request.url))

    page.goto(f"{jupyterlab}/lab/tree/{NOTEBOOK.name}?reset")
    # Two timelines and a flame graph; three tables of text.
    page.wait_for_function(
        "document.querySelectorAll('.js-plotly-plot .main-svg').length >= 3", timeout=120_000
    )
    page.wait_for_function("document.body.innerText.includes('compared with first.jsonl.zst')")

    assert page.evaluate("document.body.dataset.jpThemeLight") == str(theme == "Light").lower()
    assert page.locator("g.legend").count() >= 1
    foreign = [url for url in requests if "://" in url and not url.startswith(jupyterlab)]
    assert not [url for url in foreign if not url.startswith(("data:", "blob:"))]
    page.screenshot(path=folder / f"{theme.lower()}.png")
    if kept := os.environ.get("ROAST_SCREENSHOTS"):
        page.screenshot(path=Path(kept) / f"notebook-{theme.lower()}.png")
    page.close()
