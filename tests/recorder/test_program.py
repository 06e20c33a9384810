"""What is said of the user's program."""

import subprocess

import pytest

from roast_recorder.configuration import WITHHELD
from roast_recorder.program import arguments, commit, looks_random


def test_arguments_are_as_they_were_given():
    given = ["data.root", "--chunks", "100", "-v", "--year=2018", "TTTo2L2Nu_13TeV-powheg"]

    assert arguments(given) == given


@pytest.mark.parametrize(
    "argument",
    ["c4n4ry-Tr1ll-1-9f8e7d6c5b4a", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY1x",
     "--thing=a8Kd93jfL2mQ0xZ7", "two\nlines"],
)  # fmt: skip
def test_an_argument_that_looks_like_a_secret_is_withheld(argument):
    [told] = arguments([argument])

    assert told in (WITHHELD, f"--thing={WITHHELD}")


def test_there_is_an_end_of_arguments():
    told = arguments(["x" * 1_000] * 1_000)

    assert (len(told), len(told[0])) == (100, 300)


@pytest.mark.parametrize(
    ("text", "random"),
    [
        ("TTToSemiLeptonic_TuneCP5_13TeV-powheg-pythia8", False),
        ("2018UL_nanoaod_v9_all_chunks", False),
        ("/store/user/a8Kd93jfL2mQ0xZ7/file.root", False),
        ("short1A2b3", False),
        ("9f86d081884c7d659a2feaa0c55ad015", True),
        ("a8Kd93jfL2mQ0xZ7", True),
    ],
)
def test_what_looks_random(text, random):
    assert looks_random(text) is random


@pytest.fixture
def repository(tmp_path):
    """A folder with one commit, whose remote's URL holds a token."""

    def git(*words):
        identity = ["-c", "user.name=n", "-c", "user.email=e@x"]
        subprocess.run(
            ["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True
        )

    git("init", "-b", "main")
    (tmp_path / "analysis.py").write_text("1\n")
    git("add", ".")
    git("commit", "-m", "first")
    git(
        "remote",
        "add",
        "origin",
        "https://oauth2:glpat-canary@git.site/group/repo.git?x=canary",
    )
    (tmp_path / "below").mkdir()
    return tmp_path


def head(repository):
    answer = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=repository, check=True, capture_output=True, text=True
    )
    return answer.stdout.strip()


def test_the_commit_of_a_working_folder(repository):
    assert commit(repository / "below") == {
        "git commit": head(repository),
        "git branch": "main",
        "git remote": "git.site/group/repo.git",
        "git dirty": False,
    }


def test_what_is_not_committed_makes_it_dirty(repository):
    (repository / "untracked.txt").write_text("x")
    assert commit(repository)["git dirty"] is False

    (repository / "analysis.py").write_text("2\n")
    assert commit(repository)["git dirty"] is True


def test_packed_branches_detached_heads_and_worktrees(repository, tmp_path_factory):
    expected = head(repository)
    subprocess.run(["git", "pack-refs", "--all"], cwd=repository, check=True)
    assert commit(repository)["git commit"] == expected

    other = tmp_path_factory.mktemp("other") / "tree"
    subprocess.run(
        ["git", "worktree", "add", "-q", "-b", "side", other], cwd=repository, check=True
    )
    told = commit(other)
    assert (told["git commit"], told["git branch"]) == (expected, "side")
    assert told["git remote"] == "git.site/group/repo.git"

    subprocess.run(["git", "checkout", "-q", "--detach"], cwd=repository, check=True)
    told = commit(repository)
    assert (told["git commit"], told["git branch"]) == (expected, None)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("git@github.com:org/repo.git", "github.com/org/repo.git"),
        ("ssh://git@site:7999/org/repo.git", "site/org/repo.git"),
        ("/home/somebody/repo", None),
        ("https://site/a8Kd93jfL2mQ0xZ7/repo", f"site/{WITHHELD}/repo"),
    ],
)
def test_of_a_remote_only_the_place_is_told(repository, url, place):
    subprocess.run(["git", "remote", "set-url", "origin", url], cwd=repository, check=True)

    assert commit(repository)["git remote"] == place


def test_a_folder_of_no_repository(tmp_path):
    assert commit(tmp_path) == {}


def test_a_repository_without_a_commit_or_of_nonsense(tmp_path):
    (tmp_path / ".git").mkdir()
    assert commit(tmp_path) == {}

    (tmp_path / ".git" / "HEAD").write_bytes(b"\xff ref: \x00")
    assert commit(tmp_path) == {}
