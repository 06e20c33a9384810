"""Text of exceptions: files are in it, and what a worker sends is not run."""

import pickle

import cloudpickle
import pytest
from distributed.core import error_message
from distributed.protocol import Serialized, serialize

from roast_recorder.exception_text import MAX_EXCEPTION_LENGTH, exception_text, received_text

FILE = "root://site//store/a.root"
MISSING = FileNotFoundError(2, "No such file", FILE)
MISSING_TEXT = f"FileNotFoundError(\"[Errno 2] No such file: '{FILE}'\")"
OTHER_TEXT = MISSING_TEXT.replace(FILE, "b")


class StorageError(OSError):
    """An error of the user's own library."""


class UnpicklableError(OSError):
    def __reduce__(self):
        raise TypeError("no")


def caused():
    try:
        try:
            raise MISSING
        except OSError as error:
            raise Exception(f"Failed: it's {error!r}.") from error  # noqa: TRY002
    except Exception as error:  # noqa: BLE001
        return error


CASES = [
    (MISSING, MISSING_TEXT),
    (PermissionError(13, "Denied", b"/a"), "PermissionError(\"[Errno 13] Denied: b'/a'\")"),
    (OSError(5, "Bad", "a", None, "b"), "OSError(\"[Errno 5] Bad: 'a' -> 'b'\")"),
    (StorageError(5, "Bad", "/s"), "StorageError(\"[Errno 5] Bad: '/s'\")"),
    (
        ExceptionGroup("all", [MISSING, OSError(2, "No such file", "b"), KeyError("k")]),
        f"ExceptionGroup('all', [{MISSING_TEXT}, {OTHER_TEXT}, KeyError('k')])",
    ),
    # Nothing is added to those whose repr is whole.
    (KeyError("k"), "KeyError('k')"),
    (ValueError(), "ValueError()"),
    (OSError("no number"), "OSError('no number')"),
    (OSError(5, "no file"), "OSError(5, 'no file')"),
    (ValueError(2, "a pair"), "ValueError(2, 'a pair')"),
]
IDS = [text[:30] for _, text in CASES]


def sent(error):
    """Return the text and the exception as a scheduler receives them."""
    message = error_message(error)
    return message["exception_text"], Serialized(*serialize(message["exception"].data))


@pytest.mark.parametrize(("error", "text"), CASES, ids=IDS)
def test_text_of_an_exception(error, text):
    assert exception_text(error) == text
    assert received_text(*sent(error)) == text
    # A client within the scheduler's process, without a network.
    message = error_message(error)
    assert received_text(message["exception_text"], message["exception"]) == text


def test_the_file_is_added_to_errors_that_quote_its_error():
    error = caused()

    assert exception_text(error) == f'Exception("Failed: it\'s {MISSING_TEXT}.")'
    assert received_text(*sent(error)) == exception_text(error)


def test_a_class_of_the_users_program_is_not_imported():
    namespace = {"__name__": "module_of_the_user"}
    exec("class StorageError(OSError): pass", namespace)  # pickled by value
    error = namespace["StorageError"](5, "Bad", "/s")
    pickled = cloudpickle.dumps(error)

    text = received_text(repr(error), Serialized(*serialize(pickled)))

    assert text == "StorageError(\"[Errno 5] Bad: '/s'\")"


@pytest.mark.parametrize(
    "pickled",
    [
        b"",
        b"\x80\x05garbage",
        pickle.dumps(2),
        pickle.dumps([(2, "No such file")]),
        pickle.dumps(MISSING)[:-20],
        bytes(2_000_000),
    ],
    ids=["empty", "garbage", "number", "no file", "cut", "long"],
)
def test_an_unreadable_pickle_leaves_the_text(pickled):
    text = "FileNotFoundError(2, 'No such file')"

    assert received_text(text, Serialized(*serialize(pickled))) == text
    assert received_text(text, None) == text


def test_a_pickle_is_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "pwned"), "w"))

    error = OSError(2, "No such file", "a")
    error.extra = Evil()

    text = received_text(repr(error), Serialized(*serialize(pickle.dumps(error))))

    assert text == "FileNotFoundError(\"[Errno 2] No such file: 'a'\")"
    assert not (tmp_path / "pwned").exists()


def test_an_exception_that_cannot_be_pickled_keeps_its_text():
    assert (
        received_text(*sent(UnpicklableError(5, "Bad", "/s"))) == "UnpicklableError(5, 'Bad')"
    )
    assert (
        exception_text(UnpicklableError(5, "Bad", "/s"))
        == "UnpicklableError(\"[Errno 5] Bad: '/s'\")"
    )


def test_long_texts_are_cut():
    assert len(exception_text(OSError(2, "x" * 20_000, "a"))) == MAX_EXCEPTION_LENGTH
