"""Functions of others are replaced while somebody listens, and are theirs again afterwards."""

import importlib
import importlib.util
import inspect
import itertools
import json
import pickle
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import cloudpickle
import pytest

from roast_recorder.coffea import instrumentation as hooks
from roast_recorder.coffea.instrumentation import listen, stop_listening
from roast_recorder.coffea.measurement import Measurement
from roast_recorder.process_state import here

NAME = "roast_test_kitchen"

KITCHEN = '''
class Kitchen:
    def cook(self, meal, salt=False):
        """Cook a meal."""
        if meal == "glass":
            raise ValueError("glass cannot be cooked")
        return [meal, salt]

    @staticmethod
    def wash(dish):
        return [dish]

class Bistro(Kitchen):
    pass
'''


def nothing_is_left():
    state = here()
    finders = [finder for finder in sys.meta_path if "roast" in type(finder).__module__]
    return not (state.listeners or state.patched or finders)


@pytest.fixture(autouse=True)
def nobody_listens():
    assert nothing_is_left()
    yield
    for name in list(here().listeners):
        stop_listening(name)
    assert nothing_is_left()


@pytest.fixture
def heard():
    """The names of the functions of the kitchen that were called while somebody listened."""
    return []


@pytest.fixture
def kitchen_file(monkeypatch, tmp_path, heard):
    """A module that can be imported, of which two functions are listened to."""

    def listening(function):
        def ours(*arguments, **keywords):
            heard.append(function.__name__)
            return function(*arguments, **keywords)

        return ours

    watched = [
        ("Kitchen", "cook", listening),
        ("Kitchen", "wash", listening),
        ("Kitchen", "of_another_version", listening),
        ("OfAnotherVersion", "cook", listening),
        ("Bistro", "cook", listening),  # it has none of its own
    ]
    monkeypatch.setattr(hooks, "_PATCHES", {NAME: watched})
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / f"{NAME}.py"
    file.write_text(KITCHEN)
    yield file
    sys.modules.pop(NAME, None)


@pytest.fixture
def kitchen(kitchen_file):  # noqa: ARG001 - it makes the file
    return importlib.import_module(NAME)


def functions_of(module):
    return {name: vars(module.Kitchen)[name] for name in ("cook", "wash")}


def ignore(_measured):
    pass


# -- in and out ------------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(itertools.permutations("abc")))
def test_functions_are_replaced_for_the_first_and_put_back_after_the_last(
    kitchen, heard, order
):
    before = functions_of(kitchen)
    for name in "abc":
        listen(name, ignore)

    for name in order:
        heard.clear()
        assert kitchen.Kitchen().cook("soup", salt=True) == ["soup", True]
        assert kitchen.Bistro.wash("pan") == ["pan"]
        assert heard == ["cook", "wash"]  # once, however many listen
        stop_listening(name)

    heard.clear()
    assert functions_of(kitchen) == before
    assert kitchen.Kitchen().cook("soup") == ["soup", False]
    assert heard == []
    assert "cook" not in vars(kitchen.Bistro)
    assert nothing_is_left()


def test_a_listener_of_the_same_name_takes_the_others_place(kitchen):
    before = functions_of(kitchen)
    listen("a", ignore)
    listen("a", print)
    assert here().listeners == {"a": print}

    stop_listening("a")

    assert functions_of(kitchen) == before


def test_who_never_listened_can_stop(kitchen, heard):
    listen("a", ignore)

    stop_listening("b")
    kitchen.Kitchen().cook("soup")

    assert heard == ["cook"]


def test_what_takes_their_place_looks_like_them(kitchen):
    listen("a", ignore)
    cook = kitchen.Kitchen.cook

    assert isinstance(vars(kitchen.Kitchen)["wash"], staticmethod)
    assert (cook.__module__, cook.__qualname__) == (NAME, "Kitchen.cook")
    assert cook.__doc__ == "Cook a meal."
    assert str(inspect.signature(cook)) == "(self, meal, salt=False)"


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_they_are_pickled_by_name(kitchen, pickler):
    listen("a", ignore)
    meanwhile = pickler.dumps([kitchen.Kitchen.cook, kitchen.Kitchen.wash])
    assert b"roast_recorder" not in meanwhile
    assert pickle.loads(meanwhile) == [kitchen.Kitchen.cook, kitchen.Kitchen.wash]

    stop_listening("a")

    # Who unpickles them later gets what is there then.
    assert pickle.loads(meanwhile) == [kitchen.Kitchen.cook, kitchen.Kitchen.wash]
    assert pickler.dumps([kitchen.Kitchen.cook, kitchen.Kitchen.wash]) == meanwhile


def another_copy():
    """What a worker that has the package gets when a recorder sends its own."""
    spec = importlib.util.spec_from_file_location(hooks.__name__, hooks.__file__)
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    copy._PATCHES = hooks._PATCHES
    return copy


@pytest.mark.parametrize("first_goes", [0, 1])
def test_two_copies_of_this_code_are_one(kitchen, heard, first_goes):
    before = functions_of(kitchen)
    copies = [hooks, another_copy()]
    hooks.listen("0", ignore)
    with_ours = functions_of(kitchen)

    copies[1].listen("1", ignore)
    assert functions_of(kitchen) == with_ours
    copies[first_goes].stop_listening(str(first_goes))
    assert functions_of(kitchen) == with_ours
    kitchen.Kitchen().cook("soup")
    copies[1 - first_goes].stop_listening(str(1 - first_goes))

    assert heard == ["cook"]
    assert functions_of(kitchen) == before
    assert nothing_is_left()


@pytest.mark.usefixtures("kitchen_file")
def test_a_module_that_is_imported_meets_one_copy_only(heard):
    hooks.listen("0", ignore)
    copy = another_copy()
    copy.listen("1", ignore)
    hooks.stop_listening("0")

    importlib.import_module(NAME).Kitchen().cook("soup")
    copy.stop_listening("1")

    assert heard == ["cook"]


def test_many_that_come_and_go_at_once_leave_nothing(kitchen):
    before = functions_of(kitchen)
    wrong = []

    def come_and_go(name):
        for _ in range(300):
            listen(name, ignore)
            wrong.extend([] if kitchen.Kitchen.wash("pan") == ["pan"] else ["pan"])
            stop_listening(name)

    threads = [threading.Thread(target=come_and_go, args=(name,)) for name in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong
    assert functions_of(kitchen) == before
    assert nothing_is_left()


# -- somebody else does the same -------------------------------------------------------------


def replace_cook(kitchen):
    """Somebody else's patch, which calls what was there before."""
    inside = kitchen.Kitchen.cook

    def cook(self, meal, salt=False):
        return ["theirs", *inside(self, meal, salt)]

    kitchen.Kitchen.cook = cook
    return cook


def test_what_somebody_put_over_ours_stays_and_works(kitchen, heard):
    wash = vars(kitchen.Kitchen)["wash"]
    listen("a", ignore)
    theirs = replace_cook(kitchen)
    assert kitchen.Kitchen().cook("soup") == ["theirs", "soup", False]
    assert heard == ["cook"]

    stop_listening("a")

    assert functions_of(kitchen) == {"cook": theirs, "wash": wash}
    assert kitchen.Kitchen().cook("soup") == ["theirs", "soup", False]


def test_the_next_listener_hears_what_somebody_put_over_ours(kitchen, heard):
    listen("a", ignore)
    theirs = replace_cook(kitchen)
    stop_listening("a")
    heard.clear()

    listen("b", ignore)
    assert kitchen.Kitchen().cook("soup") == ["theirs", "soup", False]
    stop_listening("b")

    assert "cook" in heard
    assert vars(kitchen.Kitchen)["cook"] is theirs


@pytest.mark.parametrize("layers", [1, 2])
def test_what_reads_a_column_takes_the_time_once(layers, monkeypatch):
    """With ours inside of theirs, inside of ours again."""
    monkeypatch.setattr(hooks, "perf_counter", itertools.count().__next__)
    mapping = SimpleNamespace(_access_log=[SimpleNamespace(branch="Jet_pt")])
    measurement = Measurement({}, "processed")
    measurement._mapping = mapping
    monkeypatch.setattr(here().local, "measurement", measurement, raising=False)

    read = lambda _mapping, branch: [branch]  # noqa: E731
    for _ in range(layers):
        read = hooks._notes_column(read)

    assert read(mapping, "handle") == ["handle"]
    assert read(mapping, "handle") == ["handle"]
    assert measurement._seconds_by_branch == {"Jet_pt": 2}


def test_what_somebody_put_in_before_us_is_put_back(kitchen, heard):
    theirs = replace_cook(kitchen)
    listen("a", ignore)
    assert kitchen.Kitchen().cook("soup") == ["theirs", "soup", False]
    assert heard == ["cook"]

    stop_listening("a")

    assert vars(kitchen.Kitchen)["cook"] is theirs


# -- modules that are not there yet ----------------------------------------------------------


def test_a_module_is_not_imported_and_listened_to_once_it_is(kitchen_file, heard):
    listen("a", ignore)
    assert NAME not in sys.modules

    kitchen = importlib.import_module(NAME)
    kitchen.Kitchen().cook("soup")

    assert heard == ["cook"]
    assert kitchen.__file__ == str(kitchen_file)
    stop_listening("a")
    assert not hasattr(kitchen.Kitchen.cook, "__wrapped__")


@pytest.mark.usefixtures("kitchen_file")
def test_one_that_is_imported_after_the_end_is_left_alone(heard):
    listen("a", ignore)
    spec = importlib.util.find_spec(NAME)
    stop_listening("a")

    kitchen = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = kitchen
    spec.loader.exec_module(kitchen)
    kitchen.Kitchen().cook("soup")

    assert heard == []
    assert nothing_is_left()


def test_one_that_is_looked_for_and_then_imported_is_listened_to(kitchen_file, heard):
    listen("a", ignore)
    assert importlib.util.find_spec(NAME).origin == str(kitchen_file)

    importlib.import_module(NAME).Kitchen().cook("soup")

    assert heard == ["cook"]


def test_one_that_is_imported_anew_is_listened_to_again(kitchen, heard):
    listen("a", ignore)
    old = kitchen.Kitchen

    importlib.reload(kitchen)
    assert kitchen.Kitchen is not old
    kitchen.Kitchen().cook("soup")
    stop_listening("a")

    assert heard == ["cook"]
    for cook in (kitchen.Kitchen.cook, old.cook):
        assert not hasattr(cook, "__wrapped__")


def test_one_that_cannot_be_imported_fails_as_it_would(kitchen_file):
    kitchen_file.write_text("raise OSError('no gas')")
    listen("a", ignore)

    with pytest.raises(OSError, match="no gas"):
        importlib.import_module(NAME)
    kitchen_file.unlink()
    importlib.invalidate_caches()
    with pytest.raises(ModuleNotFoundError, match=f"No module named '{NAME}'"):
        importlib.import_module(NAME)


@pytest.fixture
def importing(kitchen_file):
    """Have a thread that is in the middle of importing the module; called, it goes on."""
    kitchen_file.write_text(f"import threading\nthreading.kitchen_opens.wait()\n{KITCHEN}")
    threading.kitchen_opens = threading.Event()
    thread = threading.Thread(target=importlib.import_module, args=(NAME,))

    def go_on():
        threading.kitchen_opens.set()
        thread.join()
        # What looks for the module meanwhile does so in threads of its own.
        for other in threading.enumerate():
            if other.name == "roast-import":
                other.join()
        return sys.modules[NAME]

    def begin():
        thread.start()
        wait_until(lambda: NAME in sys.modules)
        assert not hasattr(sys.modules[NAME], "Kitchen")
        return go_on

    yield begin
    go_on()
    del threading.kitchen_opens


def test_nobody_waits_for_one_that_another_thread_imports(importing, heard):
    go_on = importing()
    listen("a", ignore)

    go_on().Kitchen().cook("soup")

    assert heard == ["cook"]


def test_one_that_is_being_imported_while_listeners_change_is_listened_to_once(
    importing, heard
):
    listen("a", ignore)
    go_on = importing()
    stop_listening("a")
    listen("b", ignore)

    go_on().Kitchen().cook("soup")

    assert heard == ["cook"]


def test_one_that_arrives_when_nobody_listens_any_more_is_left_alone(importing):
    go_on = importing()
    listen("a", ignore)
    stop_listening("a")

    assert not hasattr(go_on().Kitchen.cook, "__wrapped__")


def wait_until(true, seconds=20):
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


# -- errors of ours --------------------------------------------------------------------------


def test_what_cannot_be_replaced_is_left_alone(kitchen, monkeypatch):
    def listening(_function):
        raise RuntimeError("ours")

    watched = [("Kitchen", "wash", listening), *hooks._PATCHES[NAME]]
    monkeypatch.setitem(hooks._PATCHES, NAME, watched)

    listen("a", ignore)

    assert kitchen.Kitchen().cook("soup") == ["soup", False]
    assert kitchen.Kitchen.wash("pan") == ["pan"]


@pytest.mark.usefixtures("kitchen_file")
@pytest.mark.parametrize("name", ["_patched_once_run", "_patch"])
def test_a_module_is_imported_even_if_it_cannot_be_listened_to(monkeypatch, name):
    def broken(_spec_or_module):
        raise RuntimeError("ours")

    monkeypatch.setattr(hooks, name, broken)
    listen("a", ignore)

    assert importlib.import_module(NAME).Kitchen.wash("pan") == ["pan"]


class Broken:
    """A measurement that fails wherever it is asked."""

    is_reading = False

    def reads_from(self, _mapping):
        return True

    def __getattr__(self, name):
        raise RuntimeError("ours")


CALLS = {
    "_notes_events": (),
    "_notes_column": ("branch", 0, 10),
    "_notes_basket": ("chunk", "cursor"),
    "_notes_tree": ("tree", 0, 10),
    "_measures_chunk": ("no work item",),
    "_measures_opening": ("odd",),
    "_measures_read": (0, 0, 10),
    "_carries_to_pool": ("items", "function", "accumulator"),
}


def test_all_that_is_replaced_is_tried_below():
    made = {
        listening.__name__ for watched in hooks._PATCHES.values() for *_, listening in watched
    }

    assert made == CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("measures", [False, True])
def test_errors_of_ours_do_not_come_out(name, measures, monkeypatch):
    monkeypatch.setattr(
        here().local, "measurement", Broken() if measures else None, raising=False
    )
    monkeypatch.setattr(here(), "listeners", {"a": ignore})
    told = object()

    def original(*arguments):
        return told, *arguments

    odd = object()  # it has nothing of what the hooks look at
    assert getattr(hooks, name)(original)(odd, *CALLS[name]) == (told, odd, *CALLS[name])


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("error", [ValueError("theirs"), KeyboardInterrupt()])
def test_errors_of_others_come_out_as_they_are(name, error, monkeypatch):
    monkeypatch.setattr(here().local, "measurement", Broken(), raising=False)

    def original(*_arguments):
        raise error

    with pytest.raises(type(error)) as caught:
        getattr(hooks, name)(original)(object(), *CALLS[name])

    assert caught.value is error
    assert caught.value.__context__ is None


# -- coffea and uproot -----------------------------------------------------------------------

IMPORTS = """
import importlib, json, sys
from roast_recorder.coffea import instrumentation as hooks

def of_others():
    roots = {name.partition(".")[0] for name in sys.modules}
    return sorted(roots & {"coffea", "uproot", "awkward", "distributed", "numba", "pyarrow"})

def replaced():
    return {
        f"{name}:{owner}.{attribute}": hasattr(
            getattr(getattr(sys.modules[name], owner), attribute), "__wrapped__"
        )
        for name, watched in hooks._PATCHES.items()
        if name in sys.modules
        for owner, attribute, _ in watched
    }

hooks.listen("a", print)
told = {"first": of_others()}
import uproot
told["uproot"] = of_others()
for name in hooks._PATCHES:
    importlib.import_module(name)
told["listening"] = replaced()
hooks.stop_listening("a")
told["after"] = replaced()
hooks.listen("b", print)
told["again"] = replaced()
print(json.dumps(told))
"""


def test_coffea_is_left_alone_until_somebody_imports_it():
    pytest.importorskip("coffea")
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    functions = [
        f"{name}:{owner}.{attribute}"
        for name, watched in hooks._PATCHES.items()
        for owner, attribute, _ in watched
    ]

    assert told["first"] == []
    assert "coffea" not in told["uproot"]
    assert told["listening"] == dict.fromkeys(functions, True)
    assert told["after"] == dict.fromkeys(functions, False)
    assert told["again"] == dict.fromkeys(functions, True)


def test_a_chunk_that_was_pickled_while_recording_runs_without_the_recorder():
    executor = pytest.importorskip("coffea.processor.executor")
    original = executor.Runner._work_function
    listen("a", ignore)
    ours = executor.Runner._work_function
    pickled = cloudpickle.dumps(ours)

    stop_listening("a")

    assert ours is not original
    assert pickle.loads(pickled) is executor.Runner._work_function is original
