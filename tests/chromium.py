"""Launch of Chromium for tests and benchmarks of pages, without background requests."""

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
        If no Chromium is found or it does not start.
    """
    path = os.environ.get("ROAST_CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), None
    )
    # Chromium's sandbox does not work as root, the usual user in containers.
    arguments = [*ARGUMENTS, "--no-sandbox"] if os.geteuid() == 0 else ARGUMENTS
    return playwright.chromium.launch(executable_path=path, args=arguments)
