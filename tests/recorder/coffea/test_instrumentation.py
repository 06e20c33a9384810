"""Functions of other libraries are wrapped while there are listeners, and restored after."""

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

from roast_recorder.coffea import instrumentation
from roast_recorder.coffea.instrumentation import add_listener, remove_listener
from roast_recorder.coffea.measurement import Measurement
from roast_recorder.process_state import here

NAME = "roast_test_kitchen"
KITCHEN = '''
class Kitchen:
    def cook(self, meal, salt=False):
        """Cook a meal."""
        return [meal, salt]

    @staticmethod
    def wash(dish):
        return [dish]

class Bistro(Kitchen):
    pass
'''


def nothing_is_patched():
    hooks = [finder for finder in sys.meta_path if "roast" in type(finder).__module__]
    return not (here().listeners or here().patched or hooks)


@pytest.fixture(autouse=True)
def leaves_nothing():
    assert nothing_is_patched()
    yield
    for name in list(here().listeners):
        remove_listener(name)
    assert nothing_is_patched()


@pytest.fixture
def calls():
    """Names of the functions that were called through a wrapper."""
    return []


@pytest.fixture
def kitchen_file(monkeypatch, tmp_path, calls):
    """A module that can be imported, with two functions to be patched."""

    def wrap(function):
        def wrapper(*arguments, **keywords):
            calls.append(function.__name__)
            return function(*arguments, **keywords)

        return wrapper

    patches = [
        ("Kitchen", "cook", wrap),
        ("Kitchen", "wash", wrap),
        ("Kitchen", "of_another_version", wrap),
        ("OfAnotherVersion", "cook", wrap),
        ("Bistro", "cook", wrap),  # inherited only
    ]
    monkeypatch.setattr(instrumentation, "PATCHES", {NAME: patches})
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / f"{NAME}.py"
    file.write_text(KITCHEN)
    yield file
    sys.modules.pop(NAME, None)


@pytest.fixture
def kitchen(kitchen_file):  # noqa: ARG001 - it writes the file
    return importlib.import_module(NAME)


def functions_of(kitchen):
    return {name: vars(kitchen.Kitchen)[name] for name in ("cook", "wash")}


def is_wrapped(kitchen):
    return hasattr(kitchen.Kitchen.cook, "__wrapped__")


def ignore(_records):
    pass


# -- install and remove ----------------------------------------------------------------------


def test_functions_are_wrapped_once_until_the_last_listener_is_removed(kitchen, calls):
    before = functions_of(kitchen)
    for order in itertools.permutations("abc"):
        for name in "abc":
            add_listener(name, ignore)
        for name in order:
            calls.clear()
            assert kitchen.Kitchen().cook("soup", salt=True) == ["soup", True]
            assert kitchen.Bistro.wash("pan") == ["pan"]
            assert calls == ["cook", "wash"]
            remove_listener("unknown")
            remove_listener(name)

        assert functions_of(kitchen) == before
        assert "cook" not in vars(kitchen.Bistro)
        assert nothing_is_patched()


def test_a_listener_of_the_same_name_is_replaced(kitchen):
    add_listener("a", ignore)
    add_listener("a", print)
    assert here().listeners == {"a": print}

    remove_listener("a")

    assert not is_wrapped(kitchen)


def test_wrappers_look_like_the_originals_and_are_pickled_by_name(kitchen):
    add_listener("a", ignore)
    cook, wash = kitchen.Kitchen.cook, kitchen.Kitchen.wash

    assert isinstance(vars(kitchen.Kitchen)["wash"], staticmethod)
    assert (cook.__module__, cook.__qualname__) == (NAME, "Kitchen.cook")
    assert cook.__doc__ == "Cook a meal."
    assert str(inspect.signature(cook)) == "(self, meal, salt=False)"
    pickles = [pickler.dumps([cook, wash]) for pickler in (pickle, cloudpickle)]
    remove_listener("a")
    for pickled in pickles:
        assert b"roast_recorder" not in pickled
        assert pickle.loads(pickled) == [kitchen.Kitchen.cook, kitchen.Kitchen.wash]


@pytest.mark.parametrize("first_removed", [0, 1])
def test_copies_of_this_code_share_their_wrappers(kitchen_file, calls, first_removed):
    """A worker with the package installed also has the copy that a recorder sent."""
    spec = importlib.util.spec_from_file_location(
        instrumentation.__name__, instrumentation.__file__
    )
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    copy.PATCHES = instrumentation.PATCHES
    copies = [instrumentation, copy]
    instrumentation.add_listener("0", ignore)
    copy.add_listener("1", ignore)
    kitchen = importlib.import_module(NAME)

    copies[first_removed].remove_listener(str(first_removed))
    kitchen.Kitchen().cook("soup")
    copies[1 - first_removed].remove_listener(str(1 - first_removed))

    assert kitchen.__file__ == str(kitchen_file)
    assert calls == ["cook"]
    assert not is_wrapped(kitchen)


def test_threads_can_add_and_remove_listeners_concurrently(kitchen):
    before, wrong = functions_of(kitchen), []

    def add_and_remove(name):
        for _ in range(200):
            add_listener(name, ignore)
            wrong.extend([] if kitchen.Kitchen.wash("pan") == ["pan"] else ["pan"])
            remove_listener(name)

    threads = [threading.Thread(target=add_and_remove, args=(name,)) for name in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong
    assert functions_of(kitchen) == before


# -- patches of other libraries --------------------------------------------------------------


def patch_cook(kitchen):
    """Install another library's wrapper around what is there."""
    inner = kitchen.Kitchen.cook

    def cook(self, meal, salt=False):
        return ["theirs", *inner(self, meal, salt)]

    kitchen.Kitchen.cook = cook
    return cook


def test_a_patch_around_a_wrapper_stays(kitchen, calls):
    wash = vars(kitchen.Kitchen)["wash"]
    add_listener("a", ignore)
    theirs = patch_cook(kitchen)
    assert kitchen.Kitchen().cook("soup") == ["theirs", "soup", False]
    assert calls == ["cook"]
    remove_listener("a")
    assert functions_of(kitchen) == {"cook": theirs, "wash": wash}

    calls.clear()
    add_listener("b", ignore)
    assert kitchen.Kitchen().cook("soup") == ["theirs", "soup", False]
    remove_listener("b")

    assert "cook" in calls
    assert vars(kitchen.Kitchen)["cook"] is theirs


def test_an_earlier_patch_is_restored(kitchen, calls):
    theirs = patch_cook(kitchen)
    add_listener("a", ignore)
    assert kitchen.Kitchen().cook("soup") == ["theirs", "soup", False]
    remove_listener("a")

    assert calls == ["cook"]
    assert vars(kitchen.Kitchen)["cook"] is theirs


@pytest.mark.parametrize("layers", [1, 2])
def test_a_column_read_is_timed_once_by_nested_wrappers(layers, monkeypatch):
    monkeypatch.setattr(instrumentation, "perf_counter", itertools.count().__next__)
    mapping = SimpleNamespace(_access_log=[SimpleNamespace(branch="Jet_pt")])
    measurement = Measurement({}, "processed")
    measurement._mapping = mapping
    monkeypatch.setattr(here().local, "measurement", measurement, raising=False)
    read = lambda _mapping, branch: [branch]  # noqa: E731
    for _ in range(layers):
        read = instrumentation._times_column(read)

    assert [read(mapping, "handle"), read(mapping, "handle")] == [["handle"]] * 2
    assert (measurement.read_seconds, measurement._branches) == (2, {"Jet_pt": ("handle", 2)})


# -- modules that are imported later ---------------------------------------------------------


def test_a_module_is_patched_when_it_is_imported_and_reloaded(kitchen_file, calls):
    add_listener("a", ignore)
    assert NAME not in sys.modules
    assert importlib.util.find_spec(NAME).origin == str(kitchen_file)

    kitchen = importlib.import_module(NAME)
    kitchen.Kitchen().cook("soup")
    old = kitchen.Kitchen
    importlib.reload(kitchen)
    kitchen.Kitchen().cook("soup")
    remove_listener("a")

    assert calls == ["cook", "cook"]
    assert kitchen.Kitchen is not old
    assert not any(hasattr(kind.cook, "__wrapped__") for kind in (kitchen.Kitchen, old))


@pytest.mark.usefixtures("kitchen_file")
def test_a_module_imported_after_the_last_listener_is_not_patched(calls):
    add_listener("a", ignore)
    spec = importlib.util.find_spec(NAME)
    remove_listener("a")

    kitchen = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = kitchen
    spec.loader.exec_module(kitchen)
    kitchen.Kitchen().cook("soup")

    assert calls == []


def test_import_errors_are_unchanged(kitchen_file):
    kitchen_file.write_text("raise OSError('no gas')")
    add_listener("a", ignore)

    with pytest.raises(OSError, match="no gas"):
        importlib.import_module(NAME)
    kitchen_file.unlink()
    importlib.invalidate_caches()
    with pytest.raises(ModuleNotFoundError, match=f"No module named '{NAME}'"):
        importlib.import_module(NAME)


@pytest.fixture
def importing(kitchen_file):
    """Start to import the module in a thread; return a function that lets it finish."""
    kitchen_file.write_text(f"import threading\nthreading.kitchen_opens.wait()\n{KITCHEN}")
    threading.kitchen_opens = threading.Event()
    thread = threading.Thread(target=importlib.import_module, args=(NAME,))

    def finish():
        threading.kitchen_opens.set()
        thread.join()
        for other in threading.enumerate():
            if other.name == "roast-import":
                other.join()
        return sys.modules[NAME]

    def begin():
        thread.start()
        until = time.monotonic() + 20
        while NAME not in sys.modules:
            assert time.monotonic() < until
            time.sleep(0.01)
        return finish

    yield begin
    finish()
    del threading.kitchen_opens


@pytest.mark.parametrize(
    ("before", "during", "wrapped"),
    [("", "+a", True), ("+a", "-a+b", True), ("", "+a-a", False)],
)
def test_a_module_that_is_being_imported_is_patched_afterwards(
    importing, calls, before, during, wrapped
):
    def change(steps):
        for sign, name in zip(steps[::2], steps[1::2], strict=True):
            add_listener(name, ignore) if sign == "+" else remove_listener(name)

    change(before)
    finish = importing()
    change(during)  # returns although the import has not finished

    finish().Kitchen().cook("soup")

    assert calls == ["cook"] * wrapped


# -- errors ----------------------------------------------------------------------------------


def test_a_function_that_cannot_be_wrapped_is_left_alone(kitchen, monkeypatch):
    def broken(*_):
        raise RuntimeError("ours")

    patches = [("Kitchen", "wash", broken), *instrumentation.PATCHES[NAME]]
    monkeypatch.setitem(instrumentation.PATCHES, NAME, patches)
    add_listener("a", ignore)
    assert kitchen.Kitchen.wash("pan") == ["pan"]

    del sys.modules[NAME]
    assert importlib.import_module(NAME).Kitchen.wash("pan") == ["pan"]
    monkeypatch.setattr(instrumentation, "_patch_after_loading", broken)
    del sys.modules[NAME]
    assert importlib.import_module(NAME).Kitchen.wash("pan") == ["pan"]


class Broken:
    """A measurement of which everything fails."""

    is_reading = False

    def reads_from(self, _mapping):
        return True

    def __getattr__(self, name):
        raise RuntimeError("ours")


#: Arguments of each wrapped function, beside `self`.
ARGUMENTS = {
    "events": (),
    "extract_column": ("branch", 0, 10),
    "read_members": ("chunk", "cursor"),
    "read_tree": ("tree", 0, 10),
    "_work_function": ("no work item",),
    "__call__": ("items", "function", "accumulator"),
}
WRAPPERS = [
    (f"{class_name}.{attribute}", wrap, arguments)
    for patches in instrumentation.PATCHES.values()
    for class_name, attribute, wrap in patches
    for arguments in [ARGUMENTS.get(attribute, (0, 0, 10))]
]


@pytest.mark.parametrize(("name", "wrap", "arguments"), WRAPPERS)
def test_errors_of_the_recorder_are_suppressed_and_others_raised(
    name, wrap, arguments, monkeypatch
):
    odd = object()  # without any attribute that the wrappers use
    monkeypatch.setattr(here(), "listeners", {"a": ignore})
    for measurement in (None, Broken()):
        monkeypatch.setattr(here().local, "measurement", measurement, raising=False)

        def original(*received):
            return "result", *received

        assert wrap(original)(odd, *arguments) == ("result", odd, *arguments), name
        for error in (ValueError("theirs"), KeyboardInterrupt()):

            def failing(*_, error=error):
                raise error

            with pytest.raises(type(error)) as caught:
                wrap(failing)(odd, *arguments)
            assert caught.value is error
            assert error.__context__ is None


# -- coffea and uproot -----------------------------------------------------------------------

PROGRAM = """
import importlib, json, sys
from roast_recorder.coffea import instrumentation

def imported():
    roots = {name.partition(".")[0] for name in sys.modules}
    return sorted(roots & {"coffea", "uproot", "awkward", "distributed", "numba", "pyarrow"})

def wrapped():
    return [
        hasattr(getattr(getattr(sys.modules[name], owner), attribute), "__wrapped__")
        for name, patches in instrumentation.PATCHES.items()
        for owner, attribute, _ in patches
    ]

instrumentation.add_listener("a", print)
result = {"first": imported()}
import uproot
result["uproot"] = imported()
for name in instrumentation.PATCHES:
    importlib.import_module(name)
result["added"] = wrapped()
instrumentation.remove_listener("a")
result["removed"] = wrapped()
print(json.dumps(result))
"""


def test_coffea_is_not_imported_and_every_patch_finds_its_function():
    pytest.importorskip("coffea")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)

    assert result["first"] == []
    assert "coffea" not in result["uproot"]
    assert result["added"] == [True] * len(WRAPPERS)
    assert result["removed"] == [False] * len(WRAPPERS)
