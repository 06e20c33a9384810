"""A Chromium that asks nothing of the network by itself: for tests and benchmarks of pages."""

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
    """Start a Chromium: ROAST_CHROMIUM, else the system's, else Playwright's own.

    Raises
    ------
    playwright.sync_api.Error
        There is none, or none that starts.
    """
    path = os.environ.get("ROAST_CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), None
    )
    # As root, which is how containers run, Chromium's sandbox does not start.
    arguments = [*ARGUMENTS, "--no-sandbox"] if os.geteuid() == 0 else ARGUMENTS
    return playwright.chromium.launch(executable_path=path, args=arguments)
