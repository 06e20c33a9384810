"""View events."""


def test_payload_is_json(rows):
    payload = {"action": "steal", "keys": ["a"]}
    event = {"kind": "event", "t": 2.0, "topic": "stealing", "worker": "w1", "payload": payload}

    assert rows("SELECT * FROM events", event) == [
        (2.0, "stealing", "w1", '{"action":"steal","keys":["a"]}', "T")
    ]
    assert rows("SELECT payload ->> '$.action' FROM events", event) == [("steal",)]
