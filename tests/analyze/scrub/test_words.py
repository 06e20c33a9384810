"""Text that scrubbing replaces, and text that it keeps."""

import re

from dask.utils import key_split

from roast_analyze.scrub.pseudonyms import open_dictionary
from roast_analyze.scrub.records import Scrubber
from roast_analyze.scrub.words import names_in
from roast_recorder.coffea.measurement import MAX_SECTIONS
from roast_recorder.probes.profiles import MAX_NODES
from roast_recorder.scheduler.buffer import TOO_MUCH
from roast_recorder.scheduler.buffer import UNENCODABLE as IMPOSSIBLE
from roast_recorder.writer.segments import UNENCODABLE, UNWRITTEN
from roast_schemas.units import Content


def scrubbed(record: dict, *keep: Content) -> dict:
    with open_dictionary(None) as dictionary:
        for value in record.values():
            dictionary.add_words(names_in(value) if isinstance(value, str) else ())
        return Scrubber(dictionary, frozenset(keep)).record(record)


def scrubbed_key(key: str) -> str:
    return scrubbed({"kind": "task", "key": key})["key"]


def test_words_are_replaced_and_all_between_them_stays():
    for text, expected in [
        ("('smear-5d0c3b2a9f8e7d6c', 3, 0)", "('bababa-bb86b273ff34fce1', 3, 0)"),
        ("alice-alice_v2", "bababa-bababe0"),
        ("alice bababa", "bababe bababi"),  # no pseudonym is a word of the trace
        ("/eos/user/alice/Run2018.root", "/bababa/bababe/bababi/bababo0.root"),
        ("tcp://node7.cern.ch:40123", "tcp://bababa0.bababe.bababi:40123"),
        ("tls://188.184.9.234:8786", "tls://10.0.0.0:8786"),
        ("[2001:db8:0:0:0:0:1:2]", "[fd00:0:0:0:0:0:0:0]"),
        ("[2001:db8::1]:80", "[fd00:0:0:0:0:0:0:0]:80"),
        ("::ffff:188.184.9.234", "10.0.0.0"),
        ("htcondor_188.184.9.234", "bababa0"),
        ("188.184.9.234_x.log", "bababa0.log"),
        ("ip-172-31-5-22.ec2.internal", "bababa0.bababe0.bababi"),
        (
            "Worker-237b67de-0ed7-45d1-882a-7107d6e59404",
            "Worker-afeceb66-ffc8-6f38-d952-786c6d696c79",
        ),
        ("run 362760 of 12", "run 100000 of 12"),
        ("update-graph-1795294766.968074", "update-graph-1795294766.968074"),
        ("2026.8.0rc1, 4GiB, 500ms, 1e-05", "2026.8.0rc1, 4GiB, 500ms, 1e-05"),
        ("é🚀, e\u0301", "bababa0, bababe0"),
        ("ValueError('Zürich: no key')", "ValueError('bababa: no key')"),
    ]:
        assert scrubbed_key(text) == expected
    # Free text has a pseudonym for each line.
    record = {"kind": "transition", "traceback": "def secret(x):\n    return 1\n\n"}
    assert scrubbed(record)["traceback"] == "bababa\n    bababe\n\n"


def test_reasons_of_losses_and_ends_are_kept():
    reasons = [
        TOO_MUCH,
        IMPOSSIBLE,
        "an older segment was removed to keep within retain_limit_bytes",  # before 2.5
        UNENCODABLE.format(why="TypeError"),
        UNWRITTEN.format(why="OSError"),
        "impossible to read: KeyError",
        "the client's buffer was full",
        "a worker's buffer was full",
        "a recording's buffer was full",
        "a process of a pool could not write a chunk",
        f"a chunk had more than {MAX_SECTIONS} sections",
        f"the profile of a cycle had more than {MAX_NODES} nodes",
        "measured in a thread that a task started",
        "more configurations or lists of packages than are kept",
        "recording was stopped",
        "the client disconnected",
        "the recorded block raised ValueError",
        "the program raised ValueError",
        "the recording did not end cleanly",
    ]

    for reason in reasons:
        record = {"kind": "loss", "reason": reason}
        assert scrubbed(record) == record


def test_dask_splits_a_pseudonym_like_the_key():
    for key in [
        "smear-jets-5d0c3b2a9f8e7d6c5b4a39281706f5e4",
        "('smear-jets-5d0c3b2a9f8e7d6c5b4a39281706f5e4', 3, 0)",
        "smear_jets-237b67de-0ed7-45d1-882a-7107d6e59404-2",
        "SlowProcessor-5d0c3b2a9f8e7d6c5b4a39281706f5e4",
    ]:
        prefix = key_split(scrubbed_key(key))
        assert scrubbed_key(key).lstrip("('").startswith(prefix)
        assert len(prefix.split("-")) == len(key_split(key).split("-"))


def test_json_of_any_structure():
    for value, expected in [
        # Numbers stay, unless their name is that of an ID.
        ({"SLURM_JOB_ID": "8765432"}, {"SLURM_JOB_ID": "1000000"}),
        ({"SLURM_MEM_PER_NODE": "1024000"}, {"SLURM_MEM_PER_NODE": "1024000"}),
        ({"text": "max 100000"}, {"text": "max 100000"}),
        (
            {"text": 'ClusterId = 1234567\nJobStartDate = 1795294766\nName = "alice"'},
            {"text": 'ClusterId = 1000000\nJobStartDate = 1795294766\nName = "bababe"'},
        ),
        ({"xsec": 831.76, "alice": [1, None]}, {"bababa": 831.76, "bababe": [1, None]}),
    ]:
        assert scrubbed({"kind": "environment", "value": value})["value"] == expected


def test_a_number_that_is_a_name_has_the_same_pseudonym_in_every_field():
    user = "0765551234"
    for name in ("user", "account", "queue", "USER", "SLURM_JOB_ACCOUNT", "text", "value", ""):
        records = [
            {"kind": "environment", "section": "client", "name": "user", "value": user},
            {
                "kind": "environment",
                "value": {name: user, "list": [user], user: f"Owner = {user}"},
            },
            {"kind": "event", "topic": user, "payload": {name: user, "args": [user]}},
            {"kind": "event", "topic": f"/home/{user}/x", "payload": [user, {name: [user]}]},
            {"kind": "task", "key": f"('a', '{user}')", "annotations": {name: user}},
            {"kind": "chunk", "dataset": user, "filename": f"/eos/{user}.root"},
        ]
        with open_dictionary(None) as dictionary:
            dictionary.add_words([user])
            scrubber = Scrubber(dictionary, frozenset())
            texts = [str(scrubber.record(record)) for record in records]
        assert not [text for text in texts if user in text], name
        [pseudonym] = set(re.findall(r"1\d{9}", str(texts)))
        assert all(pseudonym in text for text in texts), texts


def test_contents_that_are_kept():
    record = {"kind": "chunk", "dataset": "TTbar", "filename": "TTbar_0.root"}

    assert scrubbed(record, Content.DATASETS) == {**record, "filename": "bababa0.root"}
