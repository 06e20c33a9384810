"""The buffer: nothing lost on the way, nothing kept without bound."""

from roast_recorder import rows
from roast_recorder.buffer import ROWS_PER_BATCH, Buffer
from roast_recorder.rows import RECORD


def row(number):
    return (RECORD, float(number), "event", {"topic": "t"})


def numbers(batches):
    return [int(item[1]) for _, batch in batches for item in rows.decode(batch)]


def test_rows_come_out_in_order():
    buffer = Buffer(limit_bytes=10**6)
    for number in range(3):
        buffer.append(row(number))

    assert numbers(buffer.pull(received=0)) == [0, 1, 2]


def test_a_batch_stays_until_it_is_acknowledged():
    buffer = Buffer(limit_bytes=10**6)
    buffer.append(row(1))
    [(first, _)] = buffer.pull(received=0)
    buffer.append(row(2))

    assert numbers(buffer.pull(received=0)) == [1, 2], "the first answer may have been lost"
    assert numbers(buffer.pull(received=first)) == [2]
    assert not buffer.empty
    assert buffer.pull(received=first + 1) == []
    assert buffer.empty


def test_many_rows_make_many_batches():
    buffer = Buffer(limit_bytes=10**8)
    for number in range(2 * ROWS_PER_BATCH + 1):
        buffer.append(row(number))

    batches = buffer.pull(received=0)

    assert len(batches) == 3
    assert numbers(batches) == list(range(2 * ROWS_PER_BATCH + 1))


def test_beyond_the_limit_rows_are_dropped_and_counted():
    buffer = Buffer(limit_bytes=100)
    buffer.append(row(1))
    buffer.encode()
    for number in range(2, 9):
        buffer.append(row(number))

    assert numbers(buffer.pull(received=0)) == [1]
    assert buffer.dropped == {"event": 7}


def test_there_is_room_again_after_a_pull():
    buffer = Buffer(limit_bytes=100)
    buffer.append(row(1))
    [(number, _)] = buffer.pull(received=0)
    buffer.pull(received=number)
    buffer.append(row(2))

    assert numbers(buffer.pull(received=number)) == [2]
    assert buffer.dropped == {}
