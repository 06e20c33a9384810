"""Which of Dask's configuration is told, and what of it is withheld."""

import dask
import pytest

from roast_recorder.configuration import WITHHELD, effective


@pytest.fixture
def differing():
    """What is told of a configuration that differs from the defaults in some options."""

    def differing(options, **how):
        with dask.config.set(options):
            told, _ = effective(**how)
        return told

    return differing


def test_defaults_are_what_packages_declare():
    _, defaults = effective()

    assert defaults["distributed.worker.memory.spill"] == 0.7
    assert defaults["distributed.comm.tls.client.key"] is None
    # JSON has no infinity.
    assert defaults["distributed.adaptive.maximum"] == "inf"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("distributed.worker.memory.spill", 0.71),
        ("distributed.worker.memory.spill", False),
        ("distributed.worker.memory.spill", None),
        ("distributed.scheduler.worker-ttl", "1 hour"),
        ("distributed.scheduler.preload", ["one", "two"]),
        ("distributed.worker.resources", {"GPU": 2}),
        ("distributed.comm.tls.min-version", 1.3),
        ("distributed.nanny.pre-spawn-environ.OMP_NUM_THREADS", "4"),
    ],
)
def test_what_differs_is_told(differing, name, value):
    told = differing({name: value})

    expected = {f"{name}.GPU": 2} if isinstance(value, dict) else {name: value}
    assert expected.items() <= told.items()


def test_a_value_that_equals_the_default_does_not_differ(differing):
    options = {"distributed.worker.memory.spill": 0.7}

    assert differing(options).keys() & options.keys() == set()


def test_two_spellings_of_an_option_are_one(differing):
    told = differing({"distributed.scheduler.worker_ttl": "1 hour"})

    assert told["distributed.scheduler.worker-ttl"] == "1 hour"
    assert "distributed.scheduler.worker_ttl" not in told


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("distributed.nanny.environ.WHATEVER", "canary"),
        ("distributed.nanny.pre-spawn-environ.OMP_NUM_THREADS", "canary"),
        ("distributed.nanny.preload-argv", ["--x", "canary"]),
        ("distributed.comm.tls.ca-file", "/canary.pem"),
        ("distributed.comm.tls.worker.cert", "/canary.pem"),
        ("distributed.client.security-loader", "canary.load"),
        ("distributed.scheduler.preload", ["import os\ncanary = 1"]),
        ("somebody.of.ones.own", "canary"),
        ("somebody.list", ["canary"]),
        ("gateway.auth.kwargs", {"x": "canary"}),
        ("jobqueue.slurm.env-extra", ["export X=canary"]),
    ],
)
def test_what_may_hold_a_secret_is_withheld(differing, name, value):
    told = differing({name: value})

    assert "canary" not in str(list(told.values()))
    assert WITHHELD in str(next(v for n, v in told.items() if n.startswith(name)))


def test_of_what_nobody_declares_numbers_and_flags_are_told(differing):
    told = differing({"mine.workers": 4, "mine.fast": True, "mine.site": "somewhere"})

    assert (told["mine.workers"], told["mine.fast"]) == (4, True)
    assert told["mine.site"] == WITHHELD


def test_of_what_nobody_declares_texts_are_told_if_asked_for(differing):
    told = differing({"mine.site": "somewhere", "mine.environ.X": "canary"}, own=True)

    assert told["mine.site"] == "somewhere"
    assert told["mine.environ.X"] == WITHHELD


def test_what_is_the_recorders_or_a_clients_is_left_out(differing):
    told = differing(
        {
            "roast.recorder.redact-patterns": ["canary"],
            "internal-inherit-config": "canary",
            "scheduler": "dask.distributed",
            "parent": 4711,
        }
    )

    assert "canary" not in str(told)
    assert told.keys().isdisjoint({"scheduler", "parent"})


def test_an_object_is_told_by_its_class_and_much_is_cut(differing):
    told = differing({"mine.thing": object(), "array.backend": "x" * 5_000}, own=True)

    assert told["mine.thing"] == "<builtins.object>"
    assert len(told["array.backend"]) == 1_000
