"""Which packages a process finds."""

import importlib.metadata

import dask
import pytest

from roast_recorder.packages import installed


@pytest.fixture
def folder(tmp_path):
    """A folder of installed packages, given by the names of their folders."""

    def folder(name, *packages):
        made = tmp_path / name
        for package in packages:
            (made / package).mkdir(parents=True)
        return str(made)

    return folder


def test_names_and_versions_are_those_of_the_folders(folder):
    at = folder(
        "site",
        "numpy-2.1.0.dist-info", "dask_image-2026.5.0.dist-info", "Zope.Thing-1.dist-info",
        "old-0.9-py3.11.egg-info", "local-1.0+cuda12.dist-info", "numpy", "note.txt",
    )  # fmt: skip

    assert installed(folders=[at]) == [
        ("dask-image", "2026.5.0"),
        ("local", "1.0+cuda12"),
        ("numpy", "2.1.0"),
        ("old", "0.9"),
        ("zope-thing", "1"),
    ]


def test_the_first_folder_wins_as_it_does_when_python_imports(folder):
    first, second = folder("a", "x-1.dist-info"), folder("b", "x-2.dist-info", "y-3.dist-info")

    assert installed(folders=[first, second, "/nowhere"]) == [("x", "1"), ("y", "3")]


def test_a_folder_that_names_no_version_is_looked_into(folder, tmp_path):
    at = folder("site", "plain.egg-info", "empty.egg-info")
    (tmp_path / "site" / "plain.egg-info" / "PKG-INFO").write_text(
        "Metadata-Version: 2.1\nName: Plain\nVersion: 7\n"
    )

    assert ("plain", "7") in installed(folders=[at])


def test_only_what_is_known(folder):
    at = folder("site", "numpy-2.1.0.dist-info", "our_secret_project-1.dist-info")

    assert installed("known", [at]) == [("numpy", "2.1.0")]


def test_this_process():
    here = dict(installed())

    assert here["dask"] == dask.__version__
    for name in ("distributed", "tornado", "cloudpickle", "orjson"):
        assert here[name] == importlib.metadata.version(name)
