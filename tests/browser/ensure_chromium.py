"""Print the path of a Chromium: the system's, else Debian's package, else Playwright's own.

If none is found, one is installed; the installer's output goes to stderr.
"""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def installed() -> str | None:
    candidates = (os.environ.get("ROAST_CHROMIUM") or None, *map(shutil.which, NAMES))
    return next((path for path in candidates if path and os.access(path, os.X_OK)), None)


def install_debian_package() -> str | None:
    if shutil.which("apt-get") is None:
        return None
    elevate = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if elevate and shutil.which("sudo") is None:
        return None
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-q"], ["install", "-y", "-q", "chromium"]):
        command = [*elevate, "apt-get", *arguments]
        if subprocess.run(command, stdout=sys.stderr, env=environment).returncode:
            return None
    return installed()


def install_playwright_browser() -> str | None:
    command = [sys.executable, "-m", "playwright", "install", "chromium"]
    if subprocess.run(command, stdout=sys.stderr).returncode:
        return None
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        return playwright.chromium.executable_path


if __name__ == "__main__":
    path = installed() or install_debian_package() or install_playwright_browser()
    if path is None:
        sys.exit("no Chromium was found and none could be installed; set ROAST_CHROMIUM")
    print(path)
