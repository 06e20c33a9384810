import pytest
from roast_analyze.report.gathered import recipe


@pytest.fixture
def recorded(open_trace):
    """What is known of how to make a run with some facts, given as section, name, value."""

    def recorded(*facts):
        names = ("section", "name", "value")
        return recipe.gather(
            open_trace(
                *(
                    {"kind": "environment", "t": 0.0, **dict(zip(names, fact, strict=True))}
                    for fact in facts
                )
            )
        )

    return recorded


def test_what_was_recorded_of_software_and_cluster(recorded):
    made = recorded(
        ("client versions", "python", "3.11.7"),
        ("client versions", "dask", "2026.8.0"),
        ("client machine", "platform", "Linux"),
        ("client", "program", "analysis.py"),
        ("cluster", "type", "distributed.deploy.local.LocalCluster"),
        ("dask configuration", "distributed.scheduler.work-stealing", True),
        ("dask configuration", "optimization.fuse.active", None),
    )

    assert (made.python, made.platform, made.program) == ("3.11.7", "Linux", "analysis.py")
    assert made.cluster == "distributed.deploy.local.LocalCluster"
    assert made.packages == {"dask": "2026.8.0"}
    assert made.configuration == {"distributed.scheduler.work-stealing": "true"}
    assert made.differing == {}


def test_versions_that_differ(recorded):
    made = recorded(
        ("client versions", "numpy", "2.4.6"),
        ("client versions", "dask", "2026.8.0"),
        ("scheduler versions", "numpy", "2.4.5"),
        ("scheduler versions", "dask", "2026.8.0"),
        ("scheduler versions", "tornado", "6"),
    )

    assert made.differing == {"numpy": {"client": "2.4.6", "scheduler": "2.4.5"}}
    assert made.packages == {"numpy": "2.4.6", "dask": "2026.8.0"}


def test_versions_of_the_scheduler_where_the_client_is_not_known(recorded):
    made = recorded(
        ("scheduler versions", "python", "3.12"), ("scheduler versions", "dask", "1")
    )

    assert (made.python, made.packages) == ("3.12", {"dask": "1"})


def test_nothing_was_recorded(recorded):
    made = recorded()

    assert (made.python, made.program, made.packages, made.configuration) == (
        None,
        None,
        {},
        {},
    )
