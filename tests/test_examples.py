"""The examples call commands that exist."""

import re
from pathlib import Path

import yaml

from roast_analyze.cli import COMMANDS

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_the_workflow_is_valid_and_calls_commands_that_exist():
    workflow = yaml.safe_load((EXAMPLES / "github-actions.yml").read_text())

    [job] = workflow["jobs"].values()
    script = "\n".join(step.get("run", "") for step in job["steps"])
    assert set(re.findall(r"roast-analyze (\w+)", script)) == {"gate", "metrics"} <= {*COMMANDS}
