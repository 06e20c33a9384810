"""The entry of the server in Jupyter: ``jupyter-server-proxy`` starts it and forwards requests.

Jupyter authenticates its users. The proxy adds a header with the token to each request, so that
other users of the machine cannot send requests to the server directly.
"""

from __future__ import annotations

import os
import secrets
import sys
from typing import Any, Final

#: Environment variables with the folder that is served, and with the token of the server.
FOLDER_VARIABLE: Final = "ROAST_SERVE_FOLDER"
TOKEN_VARIABLE: Final = "ROAST_SERVE_TOKEN"  # noqa: S105 - the name of a variable

_START_SECONDS: Final = 60


def setup() -> dict[str, Any]:
    """Return how Jupyter starts the server, and shows it in the launcher."""
    token = secrets.token_urlsafe(32)
    folder = os.environ.get(FOLDER_VARIABLE, ".")
    return {
        "command": [
            sys.executable, "-m", "roast_analyze", "serve", folder, "--port", "{port}",
        ],
        "environment": {TOKEN_VARIABLE: token},
        "request_headers_override": {"Authorization": f"token {token}"},
        "timeout": _START_SECONDS,
        "new_browser_tab": True,
        "launcher_entry": {"title": "Dask runs (roast)"},
    }  # fmt: skip
