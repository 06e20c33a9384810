"""Every kind of record that a trace can hold.

A trace is JSON lines, one record a line. A record kind is a :class:`TypedDict` below;
its docstring says what one record stands for, its fields carry type, unit and meaning,
and :data:`KINDS` gives it its name. Rules that hold for all of them, and that
``tests/schemas`` checks:

* ``kind`` and ``t`` stand in every record; ``t`` is the instant at which the recorder
  saw the fact, on the scheduler's clock.
* A name has one type and one unit wherever it stands.
* Absent and null mean the same.
* A key is text: Dask's string, or ``str(key)`` of a tuple.

History of :data:`SCHEMA_VERSION` (a new field or kind raises the minor number, a changed
meaning or a removed field the major one):

* 1.0: the first.
* 1.1: ``span`` and ``fine_metric`` are written; ``client_added`` and ``client_removed``;
  ``redacted_values`` in the trailer; ``start_t`` and ``stop_t`` of a loss; ``worker`` and
  ``run_id`` of a task that was being processed when recording began.
* 2.0: ``section`` and measured attempts at a ``chunk`` are written. What was measured of
  either is grouped in ``measured``, what a worker says of itself in ``metrics``, versions in
  ``versions``: plain ``read_json`` of DuckDB takes a line for a struct only while lines have
  a tenth of all top-level names in the mean (:data:`MAX_NAMES`). ``profile`` is written.
* 2.1: ``crc32`` in the trailer.
* 2.2: ``worker_transition``, ``transfer`` (a word of either end; what was sent lies in
  ``measured``) and ``spill`` are written; what a process runs with and on (``process`` facts
  of the environment, and sheets of packages and configuration that processes share); ``graph``
  and ``computation``; what others measured can be imported
  behind a trailer: ``import``, ``io_file``, ``io_segment`` and ``function``, whose numbers
  of input and output lie in ``measured``.
* 2.3: ``variables`` and ``files`` of a ``process`` fact replace ``jobs`` and, of ``machine``,
  ``cpu_model``, ``cgroup_cores`` and ``cgroup_memory_bytes``, which views now derive from them.
"""

from __future__ import annotations

from typing import Annotated, Final, NewType, TypedDict

from roast_schemas.units import Field, Unit

SCHEMA_VERSION: Final = "2.3"

#: Names that all kinds together may have at the top level. DuckDB infers a column of JSON
#: instead of columns with names if lines have fewer than a tenth of the names that occur
#: (``field_appearance_threshold`` of ``read_json``); transitions have 8 in the mean.
MAX_NAMES: Final = 80

#: Any JSON value. It is kept as it came and looked into by queries.
Json = NewType("Json", object)

Key = Annotated[str, Field("Dask's key of the task, as text", required=True)]
Worker = Annotated[str, Field("address of the worker, as the scheduler knows it")]
ServerId = Annotated[
    str, Field("identity of the worker process; an address can be used again, this is not")
]
RunId = Annotated[int, Field("Dask's number of the attempt at a task, unique in a scheduler")]
SpanId = Annotated[str, Field("identity of the span")]
Prefix = Annotated[str, Field("Dask's key prefix: what kind of task it is")]
ClientId = Annotated[str, Field("identity of the client, as Dask names it")]
StimulusId = Annotated[str, Field("what made Dask do this, as Dask names it")]
StartT = Annotated[float, Field("when it began", Unit.EPOCH_SECONDS)]
StopT = Annotated[float, Field("when it ended", Unit.EPOCH_SECONDS)]
Thread = Annotated[int, Field("identity of the thread that computed, within its worker")]
NBytes = Annotated[int, Field("size, as Dask's sizeof measures it", Unit.BYTES)]
Reason = Annotated[str, Field("why, in words")]
Versions = Annotated[Json, Field("versions of the software there, by name")]
ExceptionText = Annotated[str, Field("text of the exception")]


class Record(TypedDict, total=False):
    """What stands in every record."""

    kind: Annotated[str, Field("what the record is: a name of this dictionary", required=True)]
    t: Annotated[float, Field("when the recorder saw it", Unit.EPOCH_SECONDS, required=True)]


class Header(Record, total=False):
    """The beginning of a segment."""

    schema_version: Annotated[
        str, Field("version of this dictionary, major.minor", required=True)
    ]
    trace_id: Annotated[str, Field("identity of the recording", required=True)]
    segment: Annotated[int, Field("number of the segment in its trace, from 1", required=True)]
    versions: Versions
    scheduler: Annotated[str, Field("address of the scheduler")]
    scheduler_id: Annotated[str, Field("identity of the scheduler process")]
    settings: Annotated[Json, Field("the recorder's settings")]
    utc_offset_seconds: Annotated[
        float, Field("the scheduler's local time minus UTC", Unit.SECONDS)
    ]
    clock_offset_seconds: Annotated[
        float,
        Field(
            "clock of the process that wrote the file minus the scheduler's clock, measured "
            "when recording began; correct to half a round trip",
            Unit.SECONDS,
        ),
    ]


class Trailer(Record, total=False):
    """The end of a segment that ended in order."""

    segment: Annotated[int, Field("number of the segment in its trace, from 1", required=True)]
    reason: Reason
    records_by_kind: Annotated[
        dict[str, int],
        Field("records written in this segment before the trailer", Unit.COUNT, required=True),
    ]
    dropped_by_kind: Annotated[
        dict[str, int],
        Field("records lost before they could be written", Unit.COUNT, required=True),
    ]
    redacted_values: Annotated[
        int,
        Field("secrets replaced by <redacted> in this trace until now", Unit.COUNT),
    ]
    crc32: Annotated[
        int,
        Field("CRC-32 of all bytes of the segment, uncompressed, before this, its last field"),
    ]


class Environment(Record, total=False):
    """A fact about the software, the machines or the set-up of the run.

    A fact of section ``process`` describes the scheduler, the client that records or a
    worker. Its name is which of them. Its value has ``role``, ``pid``, ``python``,
    ``implementation``, ``machine`` (host, system, platform, kernel, architecture, cores,
    usable_cores, memory_bytes, open_files_limit), ``variables`` (environment variables of
    batch systems), ``files`` (a list of path and text: CPU model, limits of control groups,
    ads of HTCondor, namespace of a pod), ``plugins`` of a worker, and in ``configuration``,
    ``defaults`` and ``packages`` the names of its sheets. Before 2.3 it had ``jobs`` instead
    of variables and files.

    A sheet is written once for all processes that have it. Its name is made of what it
    holds. The value of a fact of section ``configuration`` is what differs from the
    defaults of Dask's configuration, by name; of ``defaults`` these; of ``packages`` a list
    of names and versions.
    """

    section: Annotated[str, Field("what the fact is about", required=True)]
    name: Annotated[str, Field("name: of a fact, a worker, a section of code", required=True)]
    value: Annotated[Json, Field("the fact")]
    worker: Worker
    server_id: ServerId


class Graph(Record, total=False):
    """A graph that the client sent that records, before the scheduler made tasks of it.

    Its value has: ``layers``, a list of name, type and tasks (null if Dask would have to
    make them to count them; of an expression the number of partitions) and, of an
    expression that Dask fused of others, their types in ``fused``; ``more_layers``, how
    many are left out; ``collections``, the types of what was computed; and if code is
    recorded (opt-in) ``code``: digest, filename, line_number, is_new, and the first time text
    and first_line.
    """

    client: ClientId
    key: Annotated[str, Field("Dask's key of the task, as text", required=True)]
    value: Annotated[Json, Field("the fact")]


class Computation(Record, total=False):
    """Something came to do for a scheduler that had nothing: what Dask calls a computation.

    All graphs that come until it has nothing to do again are part of it. It is written
    again when there is more to tell: with ``stimulus_id`` of the graph that came. Its value
    has, if code is recorded (opt-in) and clients send it, ``codes``: a list of digest,
    filename, line_number, and the first time text and first_line.
    """

    name: Annotated[str, Field("name: of a fact, a worker, a section of code", required=True)]
    client: ClientId
    stimulus_id: StimulusId
    value: Annotated[Json, Field("the fact")]


class Task(Record, total=False):
    """A task entering the graph, or already there when recording began."""

    key: Key
    prefix: Prefix
    group: Annotated[str, Field("Dask's task group: the tasks of one layer of a graph")]
    dependencies: Annotated[list[str], Field("keys of the tasks whose results it takes")]
    priority: Annotated[list[float], Field("Dask's priority; the smaller goes first")]
    annotations: Annotated[Json, Field("Dask annotations of the task")]
    span_id: SpanId
    client: ClientId
    state: Annotated[str, Field("state when recording began; absent if it came later")]
    stimulus_id: StimulusId
    worker: Worker
    run_id: RunId


class Startstop(TypedDict, total=False):
    """A part of a task attempt, as the worker timed it."""

    action: Annotated[str, Field("transfer, disk-read, deserialize, compute, …")]
    start: Annotated[float, Field("when the part began", Unit.EPOCH_SECONDS)]
    stop: Annotated[float, Field("when the part ended", Unit.EPOCH_SECONDS)]
    source: Annotated[str, Field("the worker that a transfer came from")]


class Transition(Record, total=False):
    """A task changed its state on the scheduler, told as the scheduler told it."""

    key: Key
    start: Annotated[str, Field("state before", required=True)]
    finish: Annotated[str, Field("state after", required=True)]
    stimulus_id: StimulusId
    worker: Annotated[
        str,
        Field(
            "the worker: of →processing, the one it was sent to; of the end of an attempt, "
            "the one that reported it"
        ),
    ]
    run_id: RunId
    thread: Thread
    nbytes: NBytes
    typename: Annotated[str, Field("type of the result")]
    startstops: Annotated[list[Startstop], Field("the parts of the attempt")]
    cause: Annotated[str, Field("key of the task whose failure made this one fail")]
    exception: ExceptionText
    traceback: Annotated[str, Field("text of the traceback")]


class WorkerAdded(Record, total=False):
    """A worker came to the scheduler, or was there when recording began."""

    worker: Worker
    server_id: ServerId
    name: Annotated[str, Field("name: of a fact, a worker, a section of code", required=True)]
    host: Annotated[str, Field("host that the worker runs on")]
    pid: Annotated[int, Field("process id on that host")]
    nthreads: Annotated[int, Field("threads that compute", Unit.COUNT)]
    memory_limit: Annotated[int, Field("memory the worker may use; 0 is no limit", Unit.BYTES)]
    nanny: Annotated[str, Field("address of the worker's nanny")]
    local_directory: Annotated[str, Field("where the worker spills to")]
    resources: Annotated[Json, Field("Dask resources that the worker offers")]
    versions: Versions


class WorkerRemoved(Record, total=False):
    """A worker left the scheduler."""

    worker: Worker
    server_id: ServerId
    stimulus_id: StimulusId


class ClientAdded(Record, total=False):
    """A client came to the scheduler, or was there when recording began."""

    client: ClientId


class ClientRemoved(Record, total=False):
    """A client left the scheduler."""

    client: ClientId


class WorkerMetrics(TypedDict, total=False):
    """What a worker said of itself at its last heartbeat."""

    cpu: Annotated[float, Field("CPU use of the process", Unit.PERCENT_OF_CORE)]
    memory: Annotated[int, Field("memory of the process", Unit.BYTES)]
    managed_bytes: Annotated[int, Field("results held in memory", Unit.BYTES)]
    spilled_memory: Annotated[
        int, Field("size in memory of the results spilled to disk", Unit.BYTES)
    ]
    spilled_disk: Annotated[int, Field("size on disk of the spilled results", Unit.BYTES)]
    ready: Annotated[int, Field("tasks that wait for a thread", Unit.COUNT)]
    event_loop_interval: Annotated[
        float, Field("mean interval of the worker's event loop; 0.02 is idle", Unit.SECONDS)
    ]
    num_fds: Annotated[int, Field("open file descriptors", Unit.COUNT)]
    incoming_bytes: Annotated[int, Field("size of the transfers coming in", Unit.BYTES)]
    outgoing_bytes: Annotated[int, Field("size of the transfers going out", Unit.BYTES)]
    host_net_read_bps: Annotated[
        float, Field("network traffic into the host", Unit.BYTES_PER_SECOND)
    ]
    host_net_write_bps: Annotated[
        float, Field("network traffic out of the host", Unit.BYTES_PER_SECOND)
    ]
    host_disk_read_bps: Annotated[float, Field("disk reads of the host", Unit.BYTES_PER_SECOND)]
    host_disk_write_bps: Annotated[
        float, Field("disk writes of the host", Unit.BYTES_PER_SECOND)
    ]


class WorkerSample(Record, total=False):
    """What the scheduler knew of a worker at a tick."""

    worker: Worker
    server_id: ServerId
    memory_limit: Annotated[int, Field("memory the worker may use; 0 is no limit", Unit.BYTES)]
    nthreads: Annotated[int, Field("threads that compute", Unit.COUNT)]
    processing: Annotated[int, Field("tasks that the scheduler assigned to it", Unit.COUNT)]
    executing: Annotated[int, Field("tasks that it is computing", Unit.COUNT)]
    occupancy: Annotated[
        float, Field("work that Dask expects to be queued there", Unit.SECONDS)
    ]
    nbytes: NBytes
    last_seen: Annotated[float, Field("last heartbeat of the worker", Unit.EPOCH_SECONDS)]
    metrics: Annotated[WorkerMetrics, Field("what the worker said of itself then")]


class Span(Record, total=False):
    """A Dask span: a named part of the client's work, when its first task entered."""

    span_id: SpanId
    span_name: Annotated[list[str], Field("names from the outermost span to this one")]
    parent_id: Annotated[str, Field("identity of the span around this one")]


class FineMetric(Record, total=False):
    """What a worker added to one of its metrics since its last heartbeat.

    Within tasks a metric has a span and a prefix. A failed task's activities are one:
    ``failed``. Sums over workers are the scheduler's own totals of a span.
    """

    worker: Worker
    server_id: ServerId
    context: Annotated[str, Field("execute, get-data, gather-dep, p2p, memory-monitor")]
    span_id: SpanId
    prefix: Prefix
    activity: Annotated[str, Field("what was done: thread-cpu, deserialize, compress, …")]
    unit: Annotated[str, Field("unit of the metric: seconds, bytes, count, …")]
    delta: Annotated[float, Field("what was added", Unit.SEE_UNIT_FIELD)]


class ProfileFrame(TypedDict, total=False):
    """A function."""

    name: Annotated[str, Field("name of the function")]
    filename: Annotated[str, Field("file of its code")]
    line_number: Annotated[int, Field("line at which its code begins", Unit.COUNT)]


class ProfileSlice(TypedDict, total=False):
    """A cycle of Dask's profiler."""

    start_t: StartT
    stop_t: StopT
    nodes: Annotated[list[int], Field("nodes that occur in it, by number from 0")]
    counts: Annotated[list[int], Field("Dask's count of each of them", Unit.COUNT)]
    innermost: Annotated[
        list[int], Field("samples that ended in each of them, if that is known", Unit.COUNT)
    ]


class ProfileTree(TypedDict, total=False):
    """Dask's trees of call counts of some cycles, laid over each other.

    A node is a function that was called from another one; node 0 is the root, of no
    function, and a parent comes before its children. Dask counts a sample in the nodes
    that lead to the innermost function, and not in the node of that one: it is there, with
    0 counts if it never called anything that was seen. ``innermost`` of a slice says how
    many samples ended in a node; the first cycle of a recording may lack it.
    """

    frames: Annotated[list[ProfileFrame], Field("functions")]
    parents: Annotated[list[int | None], Field("of each node its parent; null of the root")]
    node_frames: Annotated[
        list[int | None], Field("of each node its function, by number from 0")
    ]
    line_numbers: Annotated[list[int | None], Field("of each node the line first seen in it")]
    slices: Annotated[list[ProfileSlice], Field("cycles in which anything was sampled")]


class Profile(Record, total=False):
    """What threads were at when the profiler of a worker looked, for tasks of a prefix.

    One record covers some cycles of Dask's profiler, each of them once. The record of the
    scheduler has no worker and no prefix: what its event loop was at.
    """

    worker: Worker
    server_id: ServerId
    prefix: Prefix
    start_t: StartT
    stop_t: StopT
    interval_seconds: Annotated[float, Field("time between two samples", Unit.SECONDS)]
    tree: Annotated[ProfileTree, Field("what was called from where, and how often")]


class Branch(TypedDict, total=False):
    """What a chunk read of one branch of its file: a branch, a field or a column.

    The sizes are those of the baskets (TTree), clusters (RNTuple) or row groups (Parquet)
    that overlap the chunk's entries. One that overlaps several chunks counts in each.
    """

    branch: Annotated[str, Field("name of the branch")]
    compressed_bytes: Annotated[
        int, Field("size in the file, headers of baskets included", Unit.BYTES)
    ]
    uncompressed_bytes: Annotated[int, Field("size when decompressed", Unit.BYTES)]
    read_seconds: Annotated[
        float, Field("time to read, decompress and interpret it", Unit.SECONDS)
    ]


class Measured(TypedDict, total=False):
    """What was measured of a chunk or a section. What a source does not tell is absent.

    A section has CPU seconds, bytes read and ``memory_delta``, a transfer ``sent_bytes``, a
    spill ``disk_bytes``, an imported file what stands from ``module`` on and what was read of
    it, a chunk all the others.
    """

    until: Annotated[
        str,
        Field(
            "what ends at stop_t: 'processed', or 'read' if the same task goes on with what "
            "was read (dask-awkward)"
        ),
    ]
    source: Annotated[str, Field("what is read: TTree, RNTuple or Parquet")]
    events: Annotated[int, Field("events handed to the processor", Unit.COUNT)]
    open_seconds: Annotated[
        float,
        Field("time until there are events: opening, metadata, preloading", Unit.SECONDS),
    ]
    process_seconds: Annotated[
        float, Field("time in the processor, reading included", Unit.SECONDS)
    ]
    read_seconds: Annotated[
        float,
        Field("time to read, decompress and interpret columns", Unit.SECONDS),
    ]
    cpu_seconds: Annotated[float, Field("CPU time of the thread", Unit.SECONDS)]
    bytes_read: Annotated[int, Field("bytes requested from the source", Unit.BYTES)]
    requests: Annotated[int, Field("requests made to the source", Unit.COUNT)]
    columns: Annotated[list[str], Field("columns that were read, as coffea names them")]
    branches: Annotated[list[Branch], Field("what was read, by branch")]
    file_branches: Annotated[int, Field("branches in the file", Unit.COUNT)]
    file_bytes: Annotated[int, Field("size of the file", Unit.BYTES)]
    memory_before: Annotated[int, Field("process memory before", Unit.BYTES)]
    memory_after: Annotated[int, Field("process memory after", Unit.BYTES)]
    memory_peak: Annotated[
        int, Field("most process memory meanwhile, other threads' included", Unit.BYTES)
    ]
    memory_delta: Annotated[int, Field("process memory after minus before", Unit.BYTES)]
    sent_bytes: Annotated[
        int, Field("bytes that went over the network, compressed as they were", Unit.BYTES)
    ]
    disk_bytes: Annotated[
        int, Field("size on disk, compressed and serialised as it was", Unit.BYTES)
    ]
    from_checkpoint: Annotated[
        bool, Field("the result came from a checkpoint; nothing was read or processed")
    ]
    module: Annotated[str, Field("layer of I/O that was measured: POSIX, MPI-IO, STDIO, …")]
    rank: Annotated[int, Field("rank of the process in its job; -1: all of them together")]
    opens: Annotated[int, Field("times that it was opened", Unit.COUNT)]
    reads: Annotated[int, Field("calls that read", Unit.COUNT)]
    writes: Annotated[int, Field("calls that wrote", Unit.COUNT)]
    bytes_written: Annotated[int, Field("bytes written", Unit.BYTES)]
    write_seconds: Annotated[float, Field("time in calls that wrote", Unit.SECONDS)]
    metadata_seconds: Annotated[
        float,
        Field("time in calls that neither read nor wrote: open, stat, seek", Unit.SECONDS),
    ]
    offset_bytes: Annotated[int, Field("place in the file at which it began", Unit.BYTES)]


MeasuredThere = Annotated[Measured, Field("what was measured")]


class Chunk(Record, total=False):
    """A coffea chunk, or a file that coffea asks for its entries (without entries then).

    Two records speak of one: without ``run_id``, written when its task enters the graph,
    what the chunk is; with ``run_id``, told by the worker, what an attempt at it did.

    Without a cluster there are no tasks: the recorder makes the key, and counts the
    attempts.
    """

    key: Key
    run_id: RunId
    dataset: Annotated[str, Field("dataset that the file belongs to")]
    filename: Annotated[str, Field("file that is read, as coffea names it")]
    treename: Annotated[str, Field("tree or table within the file")]
    entry_start: Annotated[int, Field("first entry of the chunk", Unit.COUNT)]
    entry_stop: Annotated[int, Field("entry after the last of the chunk", Unit.COUNT)]
    file_uuid: Annotated[str, Field("uuid that the file carries")]
    usermeta: Annotated[Json, Field("the user's metadata of the dataset")]
    worker: Worker
    thread: Thread
    start_t: StartT
    stop_t: StopT
    measured: MeasuredThere
    nbytes: NBytes
    exception: ExceptionText


class Section(Record, total=False):
    """A part of a task that the user named, passed through once."""

    key: Key
    run_id: RunId
    name: Annotated[str, Field("name: of a fact, a worker, a section of code", required=True)]
    worker: Worker
    thread: Thread
    start_t: StartT
    stop_t: StopT
    measured: MeasuredThere
    exception: ExceptionText


class WorkerTransition(Record, total=False):
    """A task changed its state on a worker, told as the worker told it (opt-in)."""

    worker: Worker
    server_id: ServerId
    key: Key
    start: Annotated[str, Field("state before", required=True)]
    finish: Annotated[str, Field("state after", required=True)]
    state: Annotated[
        str, Field("state that it came to, if another than finish: cancelled or resumed")
    ]
    stimulus_id: StimulusId


class Transfer(Record, total=False):
    """What one end said of results that moved from one worker to another (opt-in).

    A transfer has a record of each of its ends that tells of it. A client, and the
    scheduler in its place, tells nothing.
    """

    worker: Annotated[str, Field("address of the worker that says so: one of the two")]
    server_id: ServerId
    start_t: StartT
    stop_t: StopT
    source: Annotated[str, Field("address of the worker that sent; absent: a client")]
    destination: Annotated[str, Field("address of the worker that received; absent: a client")]
    nbytes: NBytes
    keys: Annotated[dict[str, int], Field("what was moved and its size", Unit.BYTES)]
    measured: MeasuredThere


class Spill(Record, total=False):
    """A result moved between the memory of a worker and its disk (opt-in)."""

    worker: Worker
    server_id: ServerId
    key: Key
    start: Annotated[str, Field("where it was: memory or disk", required=True)]
    finish: Annotated[str, Field("where it went: disk or memory", required=True)]
    nbytes: NBytes
    measured: MeasuredThere


class Event(Record, total=False):
    """A Dask event: what the scheduler, a worker, a client or the user logged."""

    topic: Annotated[str, Field("topic that it was logged under", required=True)]
    worker: Worker
    payload: Annotated[Json, Field("the message")]


class Loss(Record, total=False):
    """Something that the recorder had to leave out."""

    reason: Reason
    record_kind: Annotated[str, Field("kind of the records that are missing")]
    records: Annotated[int, Field("records that are missing", Unit.COUNT)]
    start_t: StartT
    stop_t: StopT
    detail: Annotated[str, Field("what is known of them")]


Source = Annotated[
    str, Field("what it was imported from: the first 16 hexadecimal digits of its SHA-256")
]


class Import(Record, total=False):
    """The beginning of what was imported from a file that another program wrote.

    ``roast-analyze import`` writes it behind the recording, and right behind it the records
    that it counts: these, and nothing else, have its checksum and its size. They have the
    ``t`` of the end of the recording, so that a run is as long as it was.
    """

    name: Annotated[str, Field("what measured: darshan or yappi", required=True)]
    source: Source
    filename: Annotated[str, Field("name of the file that was imported")]
    worker: Worker
    pid: Annotated[int, Field("process id on that host")]
    start_t: StartT
    stop_t: StopT
    versions: Versions
    value: Annotated[Json, Field("what the file says of the whole: job, modules, clock, …")]
    records_by_kind: Annotated[
        dict[str, int], Field("records that follow it", Unit.COUNT, required=True)
    ]
    nbytes: Annotated[int, Field("size of the lines that follow it, uncompressed", Unit.BYTES)]
    crc32: Annotated[int, Field("CRC-32 of the lines that follow it")]


class IoFile(Record, total=False):
    """What a process, or all of a job, did to a file through a layer of I/O.

    Imported: a record of a module of Darshan.
    """

    source: Source
    filename: Annotated[str, Field("file that was opened, by its path")]
    start_t: StartT
    stop_t: StopT
    measured: MeasuredThere
    value: Annotated[Json, Field("counters of the module that are not 0, by Darshan's names")]


class IoSegment(Record, total=False):
    """One call that read from a file or wrote to it. Imported: a segment of Darshan's DXT."""

    source: Source
    filename: Annotated[str, Field("file that was opened, by its path")]
    host: Annotated[str, Field("host of the process, as Darshan names it")]
    activity: Annotated[str, Field("what was done: read or write")]
    start_t: StartT
    stop_t: StopT
    nbytes: Annotated[int, Field("bytes that were asked for", Unit.BYTES)]
    measured: MeasuredThere


class Function(Record, total=False):
    """A function that a tracing profiler measured, and what it called. Imported from Yappi.

    ``value`` has ``index``, ``line_number``, ``builtin``, ``calls``, ``actual_calls`` (without
    recursive ones), ``self_seconds`` and ``total_seconds``, ``thread`` and ``thread_name`` and
    ``tag`` if they are known, and ``callees``: a list of index, calls, actual_calls,
    self_seconds and total_seconds of what was called from here.
    """

    source: Source
    name: Annotated[str, Field("name of the function", required=True)]
    filename: Annotated[str, Field("file of its code; a built-in one's module")]
    value: Annotated[Json, Field("what was measured")]


#: Name of every kind, in the order of the data dictionary.
KINDS: Final[dict[str, type]] = {
    "header": Header,
    "trailer": Trailer,
    "environment": Environment,
    "task": Task,
    "transition": Transition,
    "worker_added": WorkerAdded,
    "worker_removed": WorkerRemoved,
    "client_added": ClientAdded,
    "client_removed": ClientRemoved,
    "worker_sample": WorkerSample,
    "graph": Graph,
    "computation": Computation,
    "span": Span,
    "fine_metric": FineMetric,
    "profile": Profile,
    "chunk": Chunk,
    "section": Section,
    "worker_transition": WorkerTransition,
    "transfer": Transfer,
    "spill": Spill,
    "event": Event,
    "loss": Loss,
    "import": Import,
    "io_file": IoFile,
    "io_segment": IoSegment,
    "function": Function,
}
