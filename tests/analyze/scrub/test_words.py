"""What of a text scrubbing keeps."""

import pytest
from dask.utils import key_split

from roast_analyze.scrub.pseudonyms import open_dictionary
from roast_analyze.scrub.records import Scrubber
from roast_analyze.scrub.words import names_in
from roast_schemas.units import Content


@pytest.fixture
def scrub_text():
    """Return a function that scrubs a text of a key."""

    def scrub_text(text: str, kind: str = "task", field: str = "key") -> str:
        with open_dictionary(None) as dictionary:
            dictionary.add_words(names_in(text))
            return Scrubber(dictionary, frozenset()).record({"kind": kind, field: text})[field]

    return scrub_text


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("('smear-5d0c3b2a9f8e7d6c', 3, 0)", "('bababa-bb86b273ff34fce1', 3, 0)"),
        ("alice-alice_v2", "bababa-bababe0"),
        ("/eos/user/alice/Run2018.root", "/bababa/bababe/bababi/bababo0.root"),
        ("tcp://node7.cern.ch:40123", "tcp://bababa0.bababe.bababi:40123"),
        ("tls://188.184.9.234:8786", "tls://10.0.0.0:8786"),
        ("[2001:db8:0:0:0:0:1:2]", "[fd00:0:0:0:0:0:0:0]"),
        (
            "Worker-237b67de-0ed7-45d1-882a-7107d6e59404",
            "Worker-afeceb66-ffc8-6f38-d952-786c6d696c79",
        ),
        ("run 362760 of 12", "run 100000 of 12"),
        ("update-graph-1795294766.968074", "update-graph-1795294766.968074"),
        ("2026.8.0rc1, 4GiB, 500ms, 1e-05", "2026.8.0rc1, 4GiB, 500ms, 1e-05"),
        ("é🚀, e\u0301", "bababa0, bababe0"),
        ("ValueError('Zürich: no key')", "ValueError('bababa: no key')"),
    ],
)  # fmt: skip
def test_words_are_replaced_and_all_between_them_stays(scrub_text, text, scrubbed):
    assert scrub_text(text) == scrubbed


@pytest.mark.parametrize(
    "key",
    [
        "smear-jets-5d0c3b2a9f8e7d6c5b4a39281706f5e4",
        "('smear-jets-5d0c3b2a9f8e7d6c5b4a39281706f5e4', 3, 0)",
        "smear_jets-237b67de-0ed7-45d1-882a-7107d6e59404-2",
        "SlowProcessor-5d0c3b2a9f8e7d6c5b4a39281706f5e4",
    ],
)
def test_dask_splits_a_pseudonym_as_the_key(scrub_text, key):
    assert scrub_text(key).lstrip("('").startswith(key_split(scrub_text(key)))
    assert len(key_split(scrub_text(key)).split("-")) == len(key_split(key).split("-"))


def test_free_text_has_a_pseudonym_for_each_line(scrub_text):
    code = "def secret(x):\n    return 1\n\n"

    assert scrub_text(code, "transition", "traceback") == "bababa\n    bababe\n\n"


@pytest.mark.parametrize(
    ("value", "scrubbed"),
    [
        # What is a number stays, unless its name says that it is an identity.
        ({"SLURM_JOB_ID": "8765432"}, {"SLURM_JOB_ID": "1000000"}),
        ({"SLURM_MEM_PER_NODE": "1024000"}, {"SLURM_MEM_PER_NODE": "1024000"}),
        ({"text": "max 100000"}, {"text": "max 100000"}),
        (
            {"text": 'ClusterId = 1234567\nJobStartDate = 1795294766\nName = "alice"'},
            {"text": 'ClusterId = 1000000\nJobStartDate = 1795294766\nName = "bababe"'},
        ),
        ({"xsec": 831.76, "alice": [1, None]}, {"bababa": 831.76, "bababe": [1, None]}),
    ],
)  # fmt: skip
def test_json_of_any_structure(value, scrubbed):
    with open_dictionary(None) as dictionary:
        scrubber = Scrubber(dictionary, frozenset())
        record = scrubber.record({"kind": "environment", "value": value})

    assert record["value"] == scrubbed


def test_contents_that_are_kept():
    record = {"kind": "chunk", "dataset": "TTbar", "filename": "TTbar_0.root"}
    with open_dictionary(None) as dictionary:
        scrubber = Scrubber(dictionary, frozenset({Content.DATASETS}))

        assert scrubber.record(record) == {**record, "filename": "bababa0.root"}
