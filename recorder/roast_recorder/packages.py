"""Which packages a process finds, and in which versions.

Names of folders tell both, so that no file needs to be opened: a thousand workers that
begin at once share one file system.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from importlib.metadata import PathDistribution
from os import scandir
from pathlib import Path
from typing import Final

#: What is recorded if not all packages are to be: those that run things, and those of the
#: scientific stack.
# fmt: off
KNOWN: Final = frozenset({
    "aiohttp", "asyncssh", "awkward", "awkward-cpp", "bokeh", "boost-histogram",
    "cachetools", "click", "cloudpickle", "coffea", "correctionlib", "cramjam", "cupy",
    "dask", "dask-awkward", "dask-cuda", "dask-gateway", "dask-histogram", "dask-image",
    "dask-jobqueue", "dask-kubernetes", "dask-ml", "distributed", "fastjet",
    "fastparquet", "fsspec", "fsspec-xrootd", "gcsfs", "h5py", "hist", "intake", "jax",
    "jinja2", "kubernetes", "lightgbm", "locket", "lz4", "matplotlib", "mplhep",
    "msgpack", "mt2", "netcdf4", "numba", "numcodecs", "numpy", "onnxruntime", "orjson",
    "pandas", "partd", "pillow", "pims", "polars", "psutil", "pyarrow", "pyyaml",
    "roast-trace", "s3fs", "scikit-image", "scikit-learn", "scipy", "sortedcontainers",
    "tblib", "tensorflow", "tiledb", "toolz", "torch", "tornado", "tritonclient",
    "ucx-py", "ucxx", "uproot", "urllib3", "uvloop", "vector", "xarray", "xgboost",
    "xrootd", "zarr", "zict", "zstandard",
})
# fmt: on

#: Packages that are written down at the most.
MAX_PACKAGES: Final = 3_000

_INSTALLED: Final = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.]*?)-(?P<version>[^-]+)(?:-py[\d.]+)?(?:-[\w.-]+)?"
    r"\.(?:dist|egg)-info"
)
_UNVERSIONED: Final = re.compile(r"[\w.-]+\.(?:dist|egg)-info")


def installed(
    which: str = "all", folders: Iterable[str] | None = None
) -> list[tuple[str, str]]:
    """List the packages that can be imported.

    Parameters
    ----------
    which : str
        ``all``, or ``known``: only those of :data:`KNOWN`.
    folders : iterable of str, optional
        Where to look; else where this process does. The first one wins, as it does when
        Python imports.

    Returns
    -------
    list of (str, str)
        Name, as package indexes spell it (``dask-image``), and version; by name.
    """
    found: dict[str, str] = {}
    for folder in dict.fromkeys(sys.path if folders is None else folders):
        for name, version in _in_folder(folder or "."):
            found.setdefault(name, version)
    if which == "known":
        found = {name: found[name] for name in found.keys() & KNOWN}
    return sorted(found.items())[:MAX_PACKAGES]


def _in_folder(folder: str) -> Iterable[tuple[str, str]]:
    try:
        with scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith("-info"))
    except OSError:
        return
    for name in names:
        if told := _INSTALLED.fullmatch(name):
            yield _normal(told["name"]), told["version"]
        elif _UNVERSIONED.fullmatch(name):
            package = _told_inside(Path(folder, name))
            if package:
                yield package


def _told_inside(path: Path) -> tuple[str, str] | None:
    try:
        metadata = PathDistribution(path).metadata
        return _normal(str(metadata["Name"])), str(metadata["Version"])
    except Exception:  # noqa: BLE001 - whatever somebody left there
        return None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
