"""Start of Chromium for tests and benchmarks of pages, without requests of its own."""

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def launched(playwright):
    """Start Chromium: ROAST_CHROMIUM, else the system's, else Playwright's.

    Raises
    ------
    playwright.sync_api.Error
        If there is none, or it does not start.
    """
    path = os.environ.get("ROAST_CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), None
    )
    # The sandbox of Chromium does not start as root, the usual user in containers.
    arguments = [*ARGUMENTS, "--no-sandbox"] if os.geteuid() == 0 else ARGUMENTS
    return playwright.chromium.launch(executable_path=path, args=arguments)
