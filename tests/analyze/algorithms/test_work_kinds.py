"""Kinds of work by the functions on a stack."""

import pytest

from roast_analyze.algorithms.work_kinds import (
    Function,
    classify,
    load_kinds,
)
from roast_analyze.errors import BrokenKinds

PACKAGES = "/env/lib/python3.11/site-packages/"
STANDARD = "/usr/lib/python3.11/"

#: Functions by short names.
FUNCTIONS = {
    "task": Function("__call__", PACKAGES + "dask/_task_spec.py", 740),
    "own": Function("process", "/home/ana/analysis.py", 12),
    "pickled": Function("process", "<dynamic-code>", 12),
    "notebook": Function("process", "<ipython-input-3-abc>", 1),
    "numpy folder": Function("process", "/home/ana/numpy/analysis.py", 3),
    "recorder": Function("process", "/src/roast_recorder/coffea/measurement.py", 9),
    "json": Function("loads", STANDARD + "json/__init__.py", 299),
    "numpy": Function("sort", PACKAGES + "numpy/_core/fromnumeric.py", 10),
    "windows": Function("sort", r"C:\env\Lib\site-packages\numpy\_core\fromnumeric.py", 10),
    "scanpy": Function("normalize", PACKAGES + "scanpy/pp.py", 1),
    "pandas": Function("apply", PACKAGES + "pandas/core/frame.py", 1),
    "uproot": Function("array", PACKAGES + "uproot/behaviors/TBranch.py", 1),
    "uproot source": Function("chunks", PACKAGES + "uproot/source/fsspec.py", 1),
    "xrootd": Function("chunks", PACKAGES + "uproot/source/xrootd.py", 1),
    "decompress": Function("decompress", PACKAGES + "uproot/compression.py", 1),
    "hist": Function("fill", PACKAGES + "boost_histogram/histogram.py", 1),
    "corrections": Function("evaluate", PACKAGES + "correctionlib/highlevel.py", 1),
    "numba": Function("compile", PACKAGES + "numba/core/dispatcher.py", 1),
    "llvm": Function("verify", PACKAGES + "llvmlite/binding/module.py", 1),
    "import": Function("_find_and_load", "<frozen importlib._bootstrap>", 1),
    "get": Function("get", STANDARD + "queue.py", 1),
    "wait": Function("wait", STANDARD + "threading.py", 288),
    "acquire": Function("acquire", STANDARD + "threading.py", 468),
    "select": Function("select", STANDARD + "selectors.py", 1),
    "result": Function("result", PACKAGES + "distributed/client.py", 1),
    "sync": Function("sync", PACKAGES + "distributed/utils.py", 1),
    "lock": Function("acquire", PACKAGES + "distributed/lock.py", 1),
    "semaphore": Function("acquire", PACKAGES + "distributed/semaphore.py", 1),
    "error": Function("error_message", PACKAGES + "distributed/core.py", 1),
    "callback": Function("add_callback", PACKAGES + "tornado/platform/asyncio.py", 1),
    "collection": Function("_gc_callback", PACKAGES + "distributed/gc.py", 1),
    "psutil": Function("memory_info", PACKAGES + "psutil/__init__.py", 1),
    "event": Function("log_event", PACKAGES + "distributed/worker.py", 1),
    "actor": Function("result", PACKAGES + "distributed/actor.py", 1),
    "queue": Function("get", PACKAGES + "distributed/queues.py", 1),
    "serializable": Function("__enter__", PACKAGES + "dask/utils.py", 1),
    "h5py": Function("with_phil", PACKAGES + "h5py/_objects.pyx", 1),
    "filelock": Function("acquire", PACKAGES + "filelock/_api.py", 1),
    "run": Function("run", STANDARD + "subprocess.py", 1),
    "socket": Function("readinto", STANDARD + "socket.py", 1),
    "http": Function("read", STANDARD + "http/client.py", 1),
    "s3": Function("_cat_file", PACKAGES + "s3fs/core.py", 1),
    "logging": Function("info", STANDARD + "logging/__init__.py", 1),
    "current process": Function("name", STANDARD + "multiprocessing/process.py", 1),
    "cloudpickle": Function("dumps", PACKAGES + "cloudpickle/cloudpickle.py", 1),
    "zarr": Function("get", PACKAGES + "zarr/core/array.py", 1),
}


def kind(stack, call=None, kinds=None):
    """Return the kind and the detail of a sample."""
    kinds = kinds or load_kinds()
    functions = [FUNCTIONS[name] for name in stack]
    parents = range(-1, len(functions))
    places, states = classify(kinds, functions, parents, range(-1, len(functions)))
    state = states[places[-1]]
    if call is not None:
        state = kinds.call(state, call)
    return state.kind, state.detail


OWN = "process (analysis.py:12)"


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        (["task"], ("Dask itself", "dask")),
        (["task", "own"], ("Python loops", OWN)),
        (["task", "pickled"], ("Python loops", "process (line 12)")),
        (["task", "notebook"], ("Python loops", "process (line 1)")),
        (["task", "numpy folder"], ("Python loops", "process (analysis.py:3)")),
        (["task", "own", "json"], ("own code", OWN)),
        (["task", "own", "recorder"], ("Python loops", OWN)),
        (["task", "own", "recorder", "numpy"], ("array kernels", "numpy")),
        (["task", "own", "scanpy"], ("other library", "scanpy")),
        (["task", "own", "numpy"], ("array kernels", "numpy")),
        (["task", "own", "windows"], ("array kernels", "numpy")),
        (["task", "own", "pandas", "own"], ("Python loops", OWN)),
        (["task", "own", "pandas", "numpy"], ("array kernels", "numpy")),
        (["task", "own", "zarr"], ("dataframes", "zarr")),
        (["task", "own", "uproot", "decompress"],
         ("decompressing", "decompress (uproot/compression.py)")),
        (["task", "own", "uproot"], ("deserializing columns", "uproot")),
        (["task", "own", "hist", "numpy"], ("histogram filling", "boost_histogram")),
        (["task", "own", "corrections", "numpy"], ("corrections", "correctionlib")),
        (["task", "own", "numba", "llvm", "logging"], ("JIT compilation", "numba")),
        (["task", "own", "numba", "import", "own"], ("JIT compilation", "numba")),
        (["task", "own", "import", "numba"], ("imports", OWN)),
        (["task", "own", "logging", "acquire"], ("logging and printing", "logging")),
        # Each record has the name of the process.
        (["task", "own", "logging", "current process"], ("logging and printing", "logging")),
        (["task", "own", "cloudpickle", "numpy"], ("pickling", "cloudpickle")),
        (["own", "event", "cloudpickle"], ("sending events", OWN)),
        (["callback", "wait"], ("sending events", "tornado")),
        (["own", "collection", "psutil"], ("garbage collection", OWN)),
        (["error", "cloudpickle"], ("Dask itself", "sending the error of a task")),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_working(stack, expected):
    assert kind(stack) == expected


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        (["own", "acquire"], ("lock", OWN)),
        (["own", "acquire", "wait"], ("lock", OWN)),
        (["own", "lock", "sync", "wait"], ("lock", OWN)),
        (["own", "semaphore", "sync", "wait"], ("lock", OWN)),
        (["pandas", "serializable"], ("lock", "apply (pandas/core/frame.py)")),
        (["own", "h5py"], ("lock", OWN)),
        (["own", "filelock"], ("lock", OWN)),
        (["own", "get", "wait"], ("queue or event", OWN)),
        (["own", "result", "sync", "wait"], ("another task", OWN)),
        (["own", "actor", "wait"], ("an actor", OWN)),
        (["own", "queue", "sync", "wait"], ("queue or event", OWN)),
        (["own", "run", "select"], ("subprocess", OWN)),
        (["own", "http", "socket"], ("network or storage", "http")),
        (["own", "socket"], ("network or storage", "socket")),
        (["own", "s3", "sync", "wait"], ("network or storage", "s3fs")),
        (["own", "uproot", "xrootd", "wait"], ("network or storage", "uproot")),
        (["own", "uproot", "uproot source", "select"], ("reading", "uproot")),
        (["own", "uproot", "get", "wait"], ("reading", "array (uproot/behaviors/TBranch.py)")),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_waiting(stack, expected):
    assert kind(["task", *stack]) == expected


@pytest.mark.parametrize(
    ("stack", "call", "expected"),
    [
        (["own"], "time.sleep", "sleeping"),
        (["own"], "_thread.lock.__enter__", "lock"),
        (["own"], "guard.acquire", "lock"),
        (["own"], "gc.collect", "garbage collection"),
        (["own"], "zlib.decompress", "decompressing"),
        (["own"], "lz4.frame.decompress", "decompressing"),
        (["own"], "_pickle.dumps", "pickling"),
        (["own"], "file.read", "local files"),
        (["own"], "io.open", "local files"),
        (["own"], "connection.recv", "network or storage"),
        (["own"], "os.waitpid", "subprocess"),
        (["own"], "builtins.print", "logging and printing"),
        (["own"], "operator @", "array kernels"),
        (["own"], "numpy.dot", "array kernels"),
        (["own"], "pyarrow.compute.sum", "dataframes"),
        (["own"], "builtins.sum", "Python loops"),
        (["own"], "math.sqrt", "Python loops"),
        (["own"], "values.append", "Python loops"),
        (["own"], "engine.start", "own code"),
        (["task"], "self.func", "own code"),
        # The function around it says more.
        (["own", "pandas"], "operator +", "dataframes"),
        (["own", "get", "wait"], "waiter.acquire", "queue or event"),
        (["own", "result", "sync", "wait"], "waiter.acquire", "another task"),
        (["own", "run"], "select.poll().poll", "subprocess"),
        (["own", "import"], "file.read", "imports"),
        (["own", "uproot"], "time.sleep", "sleeping"),
    ],
)
def test_compiled_functions(stack, call, expected):
    assert kind(["task", *stack], call)[0] == expected


def test_details_of_compiled_functions():
    assert kind(["task", "own"], "time.sleep") == ("sleeping", f"time.sleep, {OWN}")
    assert kind(["task", "own"], "guard.acquire") == ("lock", OWN)


def test_equal_steps_of_different_trees_are_classified_once():
    kinds, entered = load_kinds(), []
    enter = kinds.enter
    kinds.enter = lambda state, function: entered.append(function) or enter(state, function)
    functions = [FUNCTIONS["own"], FUNCTIONS["numpy"]]

    places, states = classify(kinds, functions, [-1, 0, 1] * 2, [-1, 0, 1] * 2)

    assert [states[place].kind for place in places[1:3]] == ["Python loops", "array kernels"]
    assert places[3:] == places[:3]
    assert len(entered) == 2


def test_patterns_of_the_user_come_first(tmp_path):
    path = tmp_path / "kinds.toml"
    path.write_text(
        """
        [kinds]
        "event selection" = "working"
        [[pattern]]
        kind = "event selection"
        file = '.*/analysis\\.py'
        function = "process"
        [[pattern]]
        kind = "network or storage"
        call = 'engine\\.start'
        """
    )
    kinds = load_kinds(path)

    assert kinds.categories["event selection"] == "working"
    assert kind(["task", "own"], kinds=kinds) == ("event selection", "")
    assert kind(["task", "pickled"], "engine.start", kinds)[0] == "network or storage"
    assert kind(["task", "pickled"], "time.sleep", kinds)[0] == "sleeping"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[pattern]]\nkind = 'lock'\nfile = '('", "missing ), unterminated subpattern"),
        ("[[pattern]]\nkind = 'naps'\nfile = 'x'", "unknown kind 'naps'"),
        ("[[pattern]]\nkind = 'lock'\npath = 'x'", "unknown field 'path'"),
        ("[[pattern]]\nkind = 'lock'", "it needs kind, and file or call"),
        ("[kinds]\nnaps = 'resting'", "invalid category 'resting' of 'naps'"),
        ("[[pattern]", "Expected"),
        (None, "No such file or directory"),
    ],
)
def test_a_file_of_the_user_that_is_invalid(tmp_path, text, message):
    path = tmp_path / "kinds.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BrokenKinds) as error:
        load_kinds(path)

    assert str(path) in str(error.value)
    assert message in str(error.value)
