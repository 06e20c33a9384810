"""Functions of other libraries are wrapped while there are listeners, and restored after."""

import importlib
import importlib.util
import inspect
import itertools
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
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

PATCHES = instrumentation.PATCHES


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
    """Return a list of the functions that are called through a wrapper."""
    return []


@pytest.fixture
def kitchen_file(monkeypatch, tmp_path, calls):
    """Write a module with two functions to be patched."""

    def wrapper(function, *arguments, **keywords):
        calls.append(function.__name__)
        return function(*arguments, **keywords)

    patches = [
        ("Kitchen", "cook", wrapper),
        ("Kitchen", "wash", wrapper),
        ("Kitchen", "of_another_version", wrapper),
        ("OfAnotherVersion", "cook", wrapper),
        ("Bistro", "cook", wrapper),  # inherited only
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


def ignore(_records):
    pass


# -- install and remove ----------------------------------------------------------------------


def test_functions_are_wrapped_once_until_the_last_listener_is_removed(kitchen, calls):
    before = functions_of(kitchen)
    for order in itertools.permutations("ab"):
        for name in "aab":
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
@pytest.mark.usefixtures("kitchen_file")
def test_copies_of_this_code_share_their_wrappers(calls, first_removed):
    """A worker with the package installed also has the copy in the recorder's pickle."""
    spec = importlib.util.find_spec(instrumentation.__name__)
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    copy.PATCHES = instrumentation.PATCHES
    copies = [instrumentation, copy]
    for number in (0, 1):
        copies[number].add_listener(str(number), ignore)
    kitchen = importlib.import_module(NAME)

    for number in (first_removed, 1 - first_removed):
        copies[number].remove_listener(str(number))
        kitchen.Kitchen().cook("soup")

    assert calls == ["cook"]


def test_threads_can_add_and_remove_listeners_concurrently(kitchen):
    before = functions_of(kitchen)

    def add_and_remove(name):
        for _ in range(200):
            add_listener(name, ignore)
            assert kitchen.Kitchen.wash("pan") == ["pan"]
            remove_listener(name)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(add_and_remove, "abcdef"))

    assert functions_of(kitchen) == before


@pytest.mark.parametrize("theirs_first", [True, False])
def test_patches_of_other_libraries_stay(kitchen, calls, theirs_first):
    wash = vars(kitchen.Kitchen)["wash"]
    if not theirs_first:
        add_listener("a", ignore)
    inner = kitchen.Kitchen.cook
    theirs = kitchen.Kitchen.cook = lambda *arguments: ["theirs", *inner(*arguments)]
    add_listener("a", ignore)

    for _ in range(2):
        assert kitchen.Kitchen().cook("soup") == ["theirs", "soup", False]
        assert len(calls) > 0
        remove_listener("a")
        assert functions_of(kitchen) == {"cook": theirs, "wash": wash}
        calls.clear()
        add_listener("a", ignore)


@pytest.mark.parametrize("layers", [1, 2])
def test_a_column_read_is_timed_once_by_nested_wrappers(layers, monkeypatch):
    monkeypatch.setattr(instrumentation, "perf_counter", itertools.count().__next__)
    mapping = SimpleNamespace(_access_log=[SimpleNamespace(branch="Jet_pt")])
    measurement = Measurement({}, "processed")
    measurement._mapping = mapping
    monkeypatch.setattr(here().local, "measurement", measurement, raising=False)
    read = lambda _mapping, branch: [branch]  # noqa: E731
    for _ in range(layers):
        read = instrumentation.wrapped(read, instrumentation.read_column)

    assert [read(mapping, "handle"), read(mapping, "handle")] == [["handle"]] * 2
    assert measurement._read_seconds == 2
    assert measurement._branches == {"Jet_pt": ("handle", 2, 0)}


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
    spec = importlib.util.find_spec(NAME)
    remove_listener("a")

    assert calls == ["cook", "cook"]
    assert kitchen.Kitchen is not old
    spec.loader.exec_module(kitchen)  # the import began before the listener was removed
    assert not any(hasattr(kind.cook, "__wrapped__") for kind in (kitchen.Kitchen, old))


@pytest.mark.usefixtures("kitchen_file")
def test_finders_without_find_spec_are_left_out(calls, monkeypatch):
    monkeypatch.setattr(sys, "meta_path", [SimpleNamespace(find_module=None), *sys.meta_path])
    add_listener("a", ignore)

    importlib.import_module(NAME).Kitchen().cook("soup")

    assert calls == ["cook"]
    remove_listener("a")


def test_import_errors_are_unchanged(kitchen_file):
    kitchen_file.write_text("raise OSError('no gas')")
    add_listener("a", ignore)

    with pytest.raises(OSError, match="no gas"):
        importlib.import_module(NAME)
    kitchen_file.unlink()
    importlib.invalidate_caches()
    with pytest.raises(ModuleNotFoundError, match=f"No module named '{NAME}'"):
        importlib.import_module(NAME)


@pytest.mark.parametrize(
    ("before", "during", "is_wrapped"),
    [("", "+a", True), ("+a", "-a+b", True), ("", "+a-a", False)],
)
def test_a_module_that_is_being_imported_is_patched_afterwards(
    kitchen_file, monkeypatch, calls, before, during, is_wrapped
):
    def change(steps):
        for sign, name in zip(steps[::2], steps[1::2], strict=True):
            add_listener(name, ignore) if sign == "+" else remove_listener(name)

    kitchen_file.write_text(f"import threading\nthreading.kitchen_opens.wait(20)\n{KITCHEN}")
    monkeypatch.setattr(threading, "kitchen_opens", threading.Event(), raising=False)
    change(before)
    importing = threading.Thread(target=importlib.import_module, args=(NAME,))
    importing.start()
    while NAME not in sys.modules and importing.is_alive():
        time.sleep(0.01)
    change(during)  # returns although the import has not finished
    threading.kitchen_opens.set()
    for thread in threading.enumerate():
        if thread is importing or thread.name == "roast-import":
            thread.join()

    sys.modules[NAME].Kitchen().cook("soup")

    assert calls == ["cook"] * is_wrapped


# -- errors ----------------------------------------------------------------------------------


def test_a_class_that_cannot_be_patched_is_left_alone(kitchen_file, calls):
    refuses = "class Refuses(type):\n    def __setattr__(self, *_):\n        raise TypeError\n"
    kitchen_file.write_text(
        refuses + KITCHEN.replace("Kitchen:", "Kitchen(metaclass=Refuses):")
    )
    add_listener("a", ignore)

    assert importlib.import_module(NAME).Kitchen.wash("pan") == ["pan"]
    assert calls == []


class Broken:
    """A measurement whose every attribute raises."""

    def __getattr__(self, name):
        raise RuntimeError("ours")


@pytest.mark.parametrize("measured", [False, True])
def test_errors_of_the_recorder_are_suppressed_and_others_raised(measured, monkeypatch):
    def raising(error):
        raise error

    measurement = Broken() if measured else None
    monkeypatch.setattr(here(), "listeners", {"a": ignore})
    monkeypatch.setattr(here().local, "measurement", measurement, raising=False)
    for _, attribute, wrapper in itertools.chain(*PATCHES.values()):
        # These have none of the attributes that the wrappers use.
        arguments = [object()] * (4 if attribute == "__call__" else 1)

        assert wrapper(lambda *received: received, *arguments) == tuple(arguments), attribute
        for error in (ValueError("theirs"), KeyboardInterrupt()):
            with pytest.raises(type(error)) as caught:
                wrapper(lambda *_, error=error: raising(error), *arguments)
            assert caught.value is error
            assert error.__context__ is None


# -- coffea and uproot -----------------------------------------------------------------------


def test_every_patch_finds_its_function():
    pytest.importorskip("coffea")

    def are_wrapped():
        return {
            hasattr(
                getattr(getattr(importlib.import_module(name), owner), attribute), "__wrapped__"
            )
            for name, patches in PATCHES.items()
            for owner, attribute, _ in patches
        }

    assert are_wrapped() == {False}
    add_listener("a", ignore)
    assert are_wrapped() == {True}
    remove_listener("a")
    assert are_wrapped() == {False}


def test_coffea_is_not_imported():
    program = (
        "import sys; from roast_recorder.coffea import instrumentation; "
        "instrumentation.add_listener('a', print); "
        "heavy = {'coffea', 'uproot', 'awkward', 'distributed', 'numba', 'pyarrow'}; "
        "assert not heavy & sys.modules.keys(), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)
