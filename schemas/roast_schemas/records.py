"""All kinds of records in a trace.

A trace consists of JSON lines, one record per line. Each kind is a :class:`TypedDict` below:
its docstring describes a record, its fields have type, unit and description, and
:data:`KINDS` has its name. These rules apply to all kinds; ``tests/schemas`` checks them:

* Every record has ``kind`` and ``t``. ``t`` is the time at which the recorder observed the
  fact, on the scheduler's clock.
* A name has one type and one unit in all kinds.
* Absent and null mean the same.
* A key is text: Dask's string, or ``str(key)`` of a tuple.

History of :data:`SCHEMA_VERSION` (a new field or kind raises the minor number, a changed
meaning or a removed field the major one):

* 1.0: the first.
* 1.1: ``span`` and ``fine_metric`` are written; ``client_added`` and ``client_removed``;
  ``redacted_values`` in the trailer; ``start_t`` and ``stop_t`` of a loss; ``worker`` and
  ``run_id`` of a task that was being processed when recording began.
* 2.0: ``section`` and measured attempts at a ``chunk`` are written. What was measured of
  either is grouped in ``measured``, metrics of a worker in ``metrics``, versions in
  ``versions``: plain ``read_json`` of DuckDB infers a struct only if lines have a tenth of all
  top-level names on average (:data:`MAX_NAMES`). ``profile`` is written.
* 2.1: ``crc32`` in the trailer.
* 2.2: ``worker_transition``, ``transfer`` (one record per end; the number of
  bytes sent is in ``measured``) and ``spill`` are written; descriptions of processes
  (``process`` facts of the environment, and sheets of packages and configuration that
  processes share); ``graph``
  and ``computation``; measurements of other programs can be imported
  after a trailer: ``import``, ``io_file``, ``io_segment`` and ``function``, whose I/O
  counters are in ``measured``.
* 2.3: ``variables`` and ``files`` of a ``process`` fact replace ``jobs`` and, of ``machine``,
  ``cpu_model``, ``cgroup_cores`` and ``cgroup_memory_bytes``, which views now derive from them.
  ``until`` of a ``chunk`` can be ``metadata``. ``config_sources`` of a ``process`` fact and its
  sheet; ``code_flags`` of a ``function``. ``wanted_keys`` is written.
  ``value`` of a ``task``.
* 2.4: ``scheduler_sample``, ``stall``, ``graph_update``, ``client_activity`` and
  ``cluster_size`` are written. ``start_t`` of a ``transition``. ``decompress_seconds`` and
  ``compression`` of a ``chunk``.
* 2.5: ``records_by_kind`` and ``dropped_by_kind`` of a ``header``.
* 2.6: ``start_t`` of a ``transition`` that cancels or reschedules an attempt. The
  ``worker_transition`` of a task that secedes is always written.
* 2.7: ``host_sample`` is written. ``calls`` of a ``profile``, and ``call_nodes``,
  ``call_names``, ``call_samples``, ``call_seconds`` and ``innermost_seconds`` of its slices.
* 2.8: ``client_program`` is written. ``host`` and ``versions`` of ``client_added``;
  ``native_threads``, ``native_busy_seconds`` and ``native_waiting_seconds`` of a
  ``host_sample``.
"""

from __future__ import annotations

from typing import Annotated, Final, NewType, TypedDict

from roast_schemas.units import LARGEST, Content, Field, Unit

SCHEMA_VERSION: Final = "2.8"

#: Names that all kinds together may have at the top level. DuckDB infers a column of JSON
#: instead of columns with names if lines have fewer than a tenth of the names that occur
#: (``field_appearance_threshold`` of ``read_json``); transitions have 8 on average.
MAX_NAMES: Final = 80

#: Valid numbers of processes, threads, lines and other things that a program numbers.
_NUMBERS: Final = (-1, 2**31 - 1)
_POSITIVE_NUMBERS: Final = (0, 2**31 - 1)

#: Any JSON value. It is stored unchanged; queries read its parts.
Json = NewType("Json", object)

Key = Annotated[str, Field("Dask's key of the task, as text", Content.KEYS, required=True)]
Worker = Annotated[
    str, Field("address of the worker, as the scheduler knows it", Content.HOSTS)
]
ServerId = Annotated[
    str,
    Field(
        "ID of the worker process; unlike an address it is never reused",
        Content.IDENTITIES,
    ),
]
RunId = Annotated[int, Field("Dask's number of the attempt, unique within a scheduler")]
SpanId = Annotated[str, Field("ID of the span", Content.IDENTITIES)]
Prefix = Annotated[str, Field("Dask's prefix of the key", Content.PREFIXES)]
ClientId = Annotated[str, Field("Dask's ID of the client", Content.IDENTITIES)]
StimulusId = Annotated[
    str, Field("Dask's ID of the event that caused the change", Content.WORDS)
]
StartT = Annotated[float, Field("start time", Unit.EPOCH_SECONDS)]
StopT = Annotated[float, Field("end time", Unit.EPOCH_SECONDS)]
Thread = Annotated[int, Field("ID of the computing thread within its worker")]
NBytes = Annotated[int, Field("size as measured by Dask's sizeof", Unit.BYTES)]
StateAfter = Annotated[str, Field("state after", Content.WORDS, required=True)]
StateBefore = Annotated[str, Field("state before", Content.WORDS, required=True)]
Pid = Annotated[int, Field("process id on that host", valid=_POSITIVE_NUMBERS)]
NThreads = Annotated[int, Field("number of computing threads", Unit.COUNT, valid=(0, 2**16))]
MemoryLimit = Annotated[int, Field("memory limit of the worker; 0 means no limit", Unit.BYTES)]
Reason = Annotated[str, Field("reason as text", Content.WORDS)]
Versions = Annotated[Json, Field("software versions by name", Content.VERSIONS)]
ExceptionText = Annotated[str, Field("text of the exception", Content.EXCEPTIONS)]


class Record(TypedDict, total=False):
    """Fields of every record."""

    kind: Annotated[str, Field("kind of the record", Content.WORDS, required=True)]
    t: Annotated[
        float,
        Field("time at which the recorder observed it", Unit.EPOCH_SECONDS, required=True),
    ]


class Header(Record, total=False):
    """The first record of a segment."""

    schema_version: Annotated[
        str, Field("version of this schema, major.minor", Content.WORDS, required=True)
    ]
    trace_id: Annotated[str, Field("ID of the recording", Content.IDENTITIES, required=True)]
    segment: Annotated[
        int,
        Field(
            "number of the segment in its trace, from 1",
            required=True,
            valid=_POSITIVE_NUMBERS,
        ),
    ]
    versions: Versions
    scheduler: Annotated[str, Field("address of the scheduler", Content.HOSTS)]
    scheduler_id: Annotated[str, Field("ID of the scheduler process", Content.IDENTITIES)]
    settings: Annotated[Json, Field("the recorder's settings", Content.CONFIGURATION)]
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
    records_by_kind: Annotated[
        dict[str, int],
        Field(
            "records in all earlier segments, without repetitions", Unit.COUNT, Content.WORDS
        ),
    ]
    dropped_by_kind: Annotated[
        dict[str, int],
        Field(
            "records of all earlier segments that were lost before they could be written",
            Unit.COUNT,
            Content.WORDS,
        ),
    ]


class Trailer(Record, total=False):
    """The last record of a segment that was closed properly."""

    segment: Annotated[
        int,
        Field(
            "number of the segment in its trace, from 1",
            required=True,
            valid=_POSITIVE_NUMBERS,
        ),
    ]
    reason: Reason
    records_by_kind: Annotated[
        dict[str, int],
        Field(
            "records written in this segment before the trailer",
            Unit.COUNT,
            Content.WORDS,
            required=True,
        ),
    ]
    dropped_by_kind: Annotated[
        dict[str, int],
        Field(
            "records lost before they could be written",
            Unit.COUNT,
            Content.WORDS,
            required=True,
        ),
    ]
    redacted_values: Annotated[
        int, Field("secrets replaced by <redacted> in this trace so far", Unit.COUNT)
    ]
    crc32: Annotated[
        int,
        Field(
            "CRC-32 of all uncompressed bytes of the segment before this field, which is the "
            "last"
        ),
    ]


class Environment(Record, total=False):
    """A fact about software, machines or setup of the run.

    A fact of section ``process`` describes the scheduler, the client that records or a
    worker. Its name is which of them. Its value has ``role``, ``pid``, ``python``,
    ``implementation``, ``machine`` (host, system, platform, kernel, architecture, cores,
    usable_cores, memory_bytes, open_files_limit), ``variables`` (environment variables of
    batch systems), ``files`` (a list of path and text: CPU model, limits of control groups,
    ads of HTCondor, hosts of a job, namespace of a pod), ``plugins`` of a worker, and in
    ``configuration``, ``config_sources``, ``defaults`` and ``packages`` the names of its
    sheets. Before 2.3 it had ``jobs`` instead of variables and files.

    A sheet is recorded once for all processes that refer to it; its name is a digest of its
    content. A sheet of section ``configuration`` has the options of Dask's configuration
    that differ from the defaults, by name; one of ``defaults`` the defaults; one of
    ``config_sources`` a list of the files and environment variables that set options: kind,
    name and the names of the options, in the order in which they apply, and options of kind
    ``code`` that have another value; one of ``packages`` a list of names and versions.
    """

    section: Annotated[str, Field("section of the fact", Content.WORDS, required=True)]
    name: Annotated[
        str,
        Field(
            "name of the fact",
            Content.CONFIGURATION,
            required=True,
        ),
    ]
    value: Annotated[Json, Field("value of the fact", Content.CONFIGURATION)]
    worker: Worker
    server_id: ServerId


class ClusterSize(Record, total=False):
    """Number of workers of the cluster object from which the recording client was created.

    Its value has ``planned``, the workers that the cluster should have, by ``scale`` or
    ``adapt``, and ``requested``, those that it has requested, for example by submitting batch
    jobs. It is recorded at the start and, with a delay of up to 0.5 s, when it has changed.
    """

    client: ClientId
    value: Annotated[
        Json, Field("``planned`` and ``requested``, see above", Content.CONFIGURATION)
    ]


class Graph(Record, total=False):
    """A graph as the recording client sent it, before the scheduler created its tasks.

    Its value has: ``layers``, a list of name, type and tasks (null if counting
    would materialize them; for an expression the number of partitions) and, for a fused
    expression, the types of its parts in ``fused``; ``more_layers``, the number of layers
    left out; ``collections``, the types of the computed collections; and, if code is
    recorded (opt-in), ``code``: digest, filename, line_number, is_new and, the first time,
    text and first_line.
    """

    client: ClientId
    key: Key
    value: Annotated[Json, Field("contents of the graph, see above", Content.CODE)]


class GraphUpdate(Record, total=False):
    """A graph as the scheduler received it from any client.

    The ``value`` of a graph of 1 MiB or more has ``groups``, a list of the first 100 task
    groups of its new tasks: group, tasks, examined (up to 10 tasks) and nbytes, the size of
    the arguments of these and of what their functions hold (partial arguments, closures,
    attributes), by Dask's sizeof.
    """

    client: ClientId
    stimulus_id: StimulusId
    nbytes: Annotated[int, Field("serialized size", Unit.BYTES)]
    value: Annotated[Json, Field("contents of the update, see above", Content.PREFIXES)]


class Computation(Record, total=False):
    """A computation of Dask: it begins when an idle scheduler receives a graph.

    All graphs that arrive until the scheduler is idle again are part of it. It is recorded
    again with the ``stimulus_id`` of each further graph. If code is recorded (opt-in) and
    clients send it, its value has ``codes``: a list of digest, filename, line_number and,
    the first time, text and first_line.
    """

    name: Annotated[
        str,
        Field("ID of the computation", Content.IDENTITIES, required=True),
    ]
    client: ClientId
    stimulus_id: StimulusId
    value: Annotated[Json, Field("contents of the computation, see above", Content.CODE)]


class Task(Record, total=False):
    """A task that entered the graph, or existed when recording began.

    Dask files a task group under the span of its first task. If a task was submitted in
    another span, its ``value`` has ``submitted_span``, Dask's annotation: ``name`` and ``ids``
    are lists from the outermost span inwards. Outside of spans the name is default, without
    ids.
    """

    key: Key
    prefix: Prefix
    group: Annotated[str, Field("Dask's task group", Content.PREFIXES)]
    dependencies: Annotated[
        list[str], Field("keys of the tasks that it depends on", Content.KEYS)
    ]
    priority: Annotated[
        list[float],
        Field("Dask's priority; smaller values run first", valid=(-LARGEST, LARGEST)),
    ]
    annotations: Annotated[Json, Field("Dask annotations of the task", Content.ANNOTATIONS)]
    span_id: SpanId
    value: Annotated[Json, Field("``submitted_span``, see above", Content.SPANS)]
    client: ClientId
    state: Annotated[
        str,
        Field("state when recording began; absent if the task entered later", Content.WORDS),
    ]
    stimulus_id: StimulusId
    worker: Worker
    run_id: RunId


class Startstop(TypedDict, total=False):
    """A phase of a task attempt, as timed by the worker."""

    action: Annotated[str, Field("transfer, disk-read, deserialize, compute, …", Content.WORDS)]
    start: Annotated[float, Field("start time of the phase", Unit.EPOCH_SECONDS)]
    stop: Annotated[float, Field("end time of the phase", Unit.EPOCH_SECONDS)]
    source: Annotated[str, Field("address of the worker that sent a transfer", Content.HOSTS)]


class Transition(Record, total=False):
    """A state transition of a task on the scheduler."""

    key: Key
    start: StateBefore
    finish: StateAfter
    stimulus_id: StimulusId
    worker: Annotated[
        str,
        Field(
            "worker that the task was sent to (finish is processing) or that reported the "
            "end of the attempt (start is processing)",
            Content.HOSTS,
        ),
    ]
    run_id: RunId
    thread: Thread
    nbytes: NBytes
    typename: Annotated[str, Field("type of the result", Content.FUNCTIONS)]
    startstops: Annotated[list[Startstop], Field("phases of the attempt")]
    start_t: Annotated[
        float,
        Field(
            "of an attempt without startstops, because it was lost, cancelled or rescheduled: "
            "when its worker began to execute it, as of the worker's last heartbeat",
            Unit.EPOCH_SECONDS,
        ),
    ]
    cause: Annotated[
        str, Field("key of the failed task that caused this one to fail", Content.KEYS)
    ]
    exception: ExceptionText
    traceback: Annotated[str, Field("text of the traceback", Content.TEXT)]


class WorkerAdded(Record, total=False):
    """A worker joined, or was connected when recording began."""

    worker: Worker
    server_id: ServerId
    name: Annotated[
        str,
        Field("name of the worker", Content.HOSTS, required=True),
    ]
    host: Annotated[str, Field("host of the worker", Content.HOSTS)]
    pid: Pid
    nthreads: NThreads
    memory_limit: MemoryLimit
    nanny: Annotated[str, Field("address of the worker's nanny", Content.HOSTS)]
    local_directory: Annotated[str, Field("folder for spilled results", Content.FILES)]
    resources: Annotated[
        Json, Field("Dask resources that the worker offers", Content.CONFIGURATION)
    ]
    versions: Versions


class WorkerRemoved(Record, total=False):
    """A worker left the scheduler."""

    worker: Worker
    server_id: ServerId
    stimulus_id: StimulusId


class ClientAdded(Record, total=False):
    """A client connected, or was connected when recording began."""

    client: ClientId
    host: Annotated[str, Field("host of its end of the connection", Content.HOSTS)]
    versions: Versions


class ClientProgram(Record, total=False):
    """The program that a client belongs to, by the client's own account.

    Clients with the preload ``roast_recorder.client_program`` report it when they connect, and
    so do clients that record. Its value has ``user_name`` and, if it is known, the ``module``
    of ``python -m`` or the ``path`` below the working folder.
    """

    client: ClientId
    name: Annotated[
        str, Field("file name of the program or notebook", Content.FILES, required=True)
    ]
    host: Annotated[str, Field("host of the client, by its own account", Content.HOSTS)]
    pid: Pid
    value: Annotated[Json, Field("``user_name`` and others, see above", Content.CONFIGURATION)]


class ClientRemoved(Record, total=False):
    """A client disconnected."""

    client: ClientId


class WantedChange(TypedDict, total=False):
    """Keys that a client wants from now on, or no longer wants."""

    t: Annotated[float, Field("time of the change", Unit.EPOCH_SECONDS)]
    action: Annotated[str, Field("desires or releases", Content.WORDS)]
    keys: Annotated[list[str], Field("keys whose state changes", Content.KEYS)]


class WantedKeys(Record, total=False):
    """Changes of the keys that a client wants, whose results Dask therefore keeps in memory.

    Queues, variables and published datasets of Dask also count as clients, and so does its
    placeholder ``fire-and-forget``. Keys that were wanted when recording began are recorded as
    desired then. No release is recorded when Dask forgets a wanted key, or when a task of
    ``fire-and-forget`` ends. Changes within a millisecond are recorded as one, with the time of
    the first.
    """

    client: ClientId
    changes: Annotated[list[WantedChange], Field("changes, in order of time")]


class Metrics(TypedDict, total=False):
    """Metrics of a worker at its last heartbeat, of the scheduler, or of a host.

    A host has the fields from ``clock_seconds`` on. Times and numbers of periods are counters
    since the start of the host, control group or threads. The control group is the one with
    the smallest CPU quota among that of the sampling process and those around it, or else its
    own.
    """

    cpu: Annotated[float, Field("CPU use of the process", Unit.PERCENT_OF_CORE)]
    memory: Annotated[int, Field("memory of the process", Unit.BYTES)]
    managed_bytes: Annotated[int, Field("results held in memory", Unit.BYTES)]
    spilled_memory: Annotated[
        int, Field("size in memory of the results spilled to disk", Unit.BYTES)
    ]
    spilled_disk: Annotated[int, Field("size on disk of the spilled results", Unit.BYTES)]
    ready: Annotated[int, Field("tasks ready to run that wait for a thread", Unit.COUNT)]
    event_loop_interval: Annotated[
        float, Field("mean interval of the event loop; 0.02 is idle", Unit.SECONDS)
    ]
    num_fds: Annotated[int, Field("open file descriptors", Unit.COUNT)]
    incoming_bytes: Annotated[int, Field("size of current incoming transfers", Unit.BYTES)]
    outgoing_bytes: Annotated[int, Field("size of current outgoing transfers", Unit.BYTES)]
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
    loop_cpu_seconds: Annotated[
        float,
        Field("CPU time so far of the thread of the scheduler's event loop", Unit.SECONDS),
    ]
    clock_seconds: Annotated[
        float, Field("monotonic clock of the host, for differences", Unit.SECONDS)
    ]
    cores: Annotated[int, Field("cores of the host", Unit.COUNT)]
    usable_cores: Annotated[
        int, Field("cores that the process may use, by its affinity", Unit.COUNT)
    ]
    cgroup_cores: Annotated[
        float, Field("cores that the control group may use, by its quota", Unit.COUNT)
    ]
    load_average: Annotated[
        float, Field("threads that run or are ready to, over the last minute", Unit.COUNT)
    ]
    host_busy_seconds: Annotated[
        float, Field("CPU time so far of everything on the host", Unit.SECONDS)
    ]
    host_idle_seconds: Annotated[float, Field("time that cores were idle so far", Unit.SECONDS)]
    host_iowait_seconds: Annotated[
        float, Field("time that cores were idle while I/O was awaited so far", Unit.SECONDS)
    ]
    host_steal_seconds: Annotated[
        float, Field("time that other virtual machines used the cores so far", Unit.SECONDS)
    ]
    usable_busy_seconds: Annotated[
        float,
        Field(
            "CPU time so far of everything on the usable cores, if they are not all cores",
            Unit.SECONDS,
        ),
    ]
    usable_idle_seconds: Annotated[
        float,
        Field(
            "time that the usable cores were idle so far, including I/O, if they are not all",
            Unit.SECONDS,
        ),
    ]
    cpu_pressure_seconds: Annotated[
        float, Field("time so far in which a thread waited for a core", Unit.SECONDS)
    ]
    cpu_pressure_avg10: Annotated[
        float, Field("share of the last 10 s in which one did", Unit.PERCENT)
    ]
    io_pressure_seconds: Annotated[
        float, Field("time so far in which a thread waited for I/O", Unit.SECONDS)
    ]
    io_pressure_avg10: Annotated[
        float, Field("share of the last 10 s in which one did", Unit.PERCENT)
    ]
    io_full_pressure_seconds: Annotated[
        float, Field("time so far in which all threads waited for I/O", Unit.SECONDS)
    ]
    cgroup_busy_seconds: Annotated[
        float, Field("CPU time so far of the control group", Unit.SECONDS)
    ]
    cgroup_periods: Annotated[
        int, Field("periods of the quota so far in which it ran", Unit.COUNT)
    ]
    cgroup_throttled_periods: Annotated[
        int, Field("periods so far in which it had used up its quota", Unit.COUNT)
    ]
    cgroup_throttled_seconds: Annotated[
        float,
        Field("time so far that it was throttled for, summed over cores", Unit.SECONDS),
    ]
    cgroup_pressure_seconds: Annotated[
        float,
        Field("time so far in which a thread of the group waited for a core", Unit.SECONDS),
    ]
    threads_busy_seconds: Annotated[
        float,
        Field("CPU time so far of the threads of the sampling worker for tasks", Unit.SECONDS),
    ]
    threads_waiting_seconds: Annotated[
        float,
        Field("time so far in which they were ready and waited for a core", Unit.SECONDS),
    ]
    native_threads: Annotated[
        int,
        Field("threads of the sampling worker that its libraries started", Unit.COUNT),
    ]
    native_busy_seconds: Annotated[
        float, Field("CPU time so far of these threads", Unit.SECONDS)
    ]
    native_waiting_seconds: Annotated[
        float,
        Field("time so far in which these were ready and waited for a core", Unit.SECONDS),
    ]


MetricsThere = Annotated[Metrics, Field("metrics of the process or host")]


class WorkerSample(Record, total=False):
    """State of a worker, as known to the scheduler, at a sampling time."""

    worker: Worker
    server_id: ServerId
    memory_limit: MemoryLimit
    nthreads: NThreads
    processing: Annotated[int, Field("tasks that the scheduler assigned to it", Unit.COUNT)]
    executing: Annotated[int, Field("tasks that it computes", Unit.COUNT)]
    occupancy: Annotated[
        float, Field("expected duration of the work assigned to it", Unit.SECONDS)
    ]
    nbytes: NBytes
    last_seen: Annotated[float, Field("last heartbeat of the worker", Unit.EPOCH_SECONDS)]
    metrics: MetricsThere


class SchedulerSample(Record, total=False):
    """Load of the scheduler's process and event loop at a tick.

    In a ``LocalCluster`` the process, and with a synchronous client the event loop's thread,
    are also the client's.
    """

    server_id: Annotated[str, Field("ID of the scheduler process", Content.IDENTITIES)]
    metrics: MetricsThere


class HostSample(Record, total=False):
    """Load of a host, as read by one process on it.

    A host is sampled by the first of its workers, and after that one has left by another; the
    scheduler's host by the scheduler, without ``worker``, while there is no worker on it.
    """

    host: Annotated[str, Field("name of the host, by its own account", Content.HOSTS)]
    worker: Worker
    server_id: Annotated[
        str, Field("ID of the worker or scheduler process", Content.IDENTITIES)
    ]
    metrics: MetricsThere


class Stall(Record, total=False):
    """A stall of the event loop of a worker or, without ``worker``, of the scheduler.

    Dask runs a tick on the loop every 20 ms by default. The record is of one that ran at
    least 0.1 s late, from when it was due until it ran.
    """

    worker: Worker
    server_id: Annotated[
        str, Field("ID of the worker or scheduler process", Content.IDENTITIES)
    ]
    start_t: StartT
    stop_t: StopT


class Span(Record, total=False):
    """A Dask span, recorded when its first task enters the graph."""

    span_id: SpanId
    span_name: Annotated[
        list[str], Field("names from the outermost span to this one", Content.SPANS)
    ]
    parent_id: Annotated[str, Field("ID of the enclosing span", Content.IDENTITIES)]


class FineMetric(Record, total=False):
    """The increase of one fine metric of a worker since its last heartbeat.

    Metrics of tasks have a span and a prefix. The only activity of failed tasks is
    ``failed``. Sums over workers equal the scheduler's totals per span.
    """

    worker: Worker
    server_id: ServerId
    context: Annotated[
        str, Field("execute, get-data, gather-dep, p2p, memory-monitor", Content.WORDS)
    ]
    span_id: SpanId
    prefix: Prefix
    activity: Annotated[
        str, Field("activity: thread-cpu, deserialize, compress, …", Content.ACTIVITIES)
    ]
    unit: Annotated[str, Field("unit of the metric: seconds, bytes, count, …", Content.WORDS)]
    delta: Annotated[float, Field("increase", Unit.SEE_UNIT_FIELD)]


class ProfileFrame(TypedDict, total=False):
    """A function."""

    name: Annotated[str, Field("name of the function", Content.FUNCTIONS)]
    filename: Annotated[str, Field("file of its code", Content.FILES)]
    line_number: Annotated[int, Field("first line of its code", Unit.COUNT, valid=_NUMBERS)]


class ProfileSlice(TypedDict, total=False):
    """A cycle of Dask's profiler."""

    start_t: StartT
    stop_t: StopT
    nodes: Annotated[
        list[int], Field("nodes that occur in it, numbered from 0", valid=_POSITIVE_NUMBERS)
    ]
    counts: Annotated[list[int], Field("Dask's count of each node", Unit.COUNT)]
    innermost: Annotated[
        list[int], Field("samples that ended in each node, if known", Unit.COUNT)
    ]
    call_nodes: Annotated[
        list[int],
        Field("nodes that called a compiled function", valid=_POSITIVE_NUMBERS),
    ]
    call_names: Annotated[
        list[int],
        Field("function that each of them called, numbered from 0", valid=_POSITIVE_NUMBERS),
    ]
    call_samples: Annotated[
        list[int], Field("samples that ended in each of these calls", Unit.COUNT)
    ]
    innermost_seconds: Annotated[
        list[float], Field("time before the samples that ended in each node", Unit.SECONDS)
    ]
    call_seconds: Annotated[
        list[float], Field("the part of it in each of the calls", Unit.SECONDS)
    ]


class ProfileTree(TypedDict, total=False):
    """The merged call trees of several cycles of Dask's profiler.

    A node is a function called from its parent. Node 0 is the root and has no function;
    parents precede their children. Dask counts a sample in all nodes on the stack except the
    innermost one, which has count 0 if it was never a caller. ``innermost`` of a slice is the
    number of samples that ended in a node; the first cycle of a recording may lack it.

    A compiled function, such as ``time.sleep``, has no node. Samples that ended in a node while
    it called one are among its ``innermost`` samples, and are also counted by the name of the
    compiled function, or of an operator, as ``call_samples``; the others ended between calls.

    Samples are late while a function holds the GIL, or while the host has no core for the
    profiler. ``innermost_seconds`` are the sums of the times since the previous samples of the
    process, also of threads that were idle then.
    """

    frames: Annotated[list[ProfileFrame], Field("functions")]
    parents: Annotated[
        list[int | None],
        Field("parent of each node; null for the root", valid=_POSITIVE_NUMBERS),
    ]
    node_frames: Annotated[
        list[int | None],
        Field("function of each node, numbered from 0", valid=_POSITIVE_NUMBERS),
    ]
    line_numbers: Annotated[
        list[int | None], Field("first line observed in each node", valid=_NUMBERS)
    ]
    calls: Annotated[
        list[str],
        Field("names of compiled functions, as the code calls them", Content.FUNCTIONS),
    ]
    slices: Annotated[list[ProfileSlice], Field("cycles with samples")]


class Profile(Record, total=False):
    """Samples of the statistical profiler of a worker for tasks of a prefix.

    A record covers several cycles of Dask's profiler, each once. The source is a
    worker's ``profile_keys_history``, which separates prefixes, and not its
    ``profile_history``, which adds up all tasks of the process. The profile of the scheduler's
    event loop has no worker and no prefix.
    """

    worker: Worker
    server_id: ServerId
    prefix: Prefix
    start_t: StartT
    stop_t: StopT
    interval_seconds: Annotated[float, Field("time between two samples", Unit.SECONDS)]
    tree: Annotated[ProfileTree, Field("call tree with counts")]


DecompressSeconds = Annotated[
    float, Field("the part of read_seconds that decompressed", Unit.SECONDS)
]


class Branch(TypedDict, total=False):
    """Data that a chunk read from one branch, field or column of its file.

    Sizes are those of the baskets (TTree) or clusters (RNTuple) that overlap the entries of
    the chunk, or of all row groups (Parquet). A piece that overlaps several chunks counts in
    each.
    """

    branch: Annotated[str, Field("name of the branch", Content.BRANCHES)]
    compressed_bytes: Annotated[
        int, Field("size in the file, including headers of baskets", Unit.BYTES)
    ]
    uncompressed_bytes: Annotated[int, Field("size when decompressed", Unit.BYTES)]
    read_seconds: Annotated[
        float, Field("time to read, decompress and interpret it", Unit.SECONDS)
    ]
    decompress_seconds: DecompressSeconds


class Measured(TypedDict, total=False):
    """Measurements of a chunk, section, transfer, spill or imported file.

    An activity of a client has CPU seconds, a section these, bytes read and ``memory_delta``,
    a transfer ``sent_bytes``, a spill ``disk_bytes``, an imported file the fields from
    ``module`` on and its reads, a chunk all others. Values that a source does not provide are
    absent.
    """

    until: Annotated[
        str,
        Field(
            "step that ends at stop_t: 'processed', 'read' if the same task continues with "
            "the data (dask-awkward), or 'metadata' of a file that coffea could not read",
            Content.WORDS,
        ),
    ]
    source: Annotated[str, Field("format: TTree, RNTuple or Parquet", Content.WORDS)]
    events: Annotated[int, Field("events handed to the processor", Unit.COUNT)]
    open_seconds: Annotated[
        float,
        Field("time before events are available: opening, metadata, preloading", Unit.SECONDS),
    ]
    process_seconds: Annotated[
        float, Field("time in the processor, including reads", Unit.SECONDS)
    ]
    read_seconds: Annotated[
        float, Field("time to read, decompress and interpret columns", Unit.SECONDS)
    ]
    decompress_seconds: DecompressSeconds
    compression: Annotated[
        str, Field("algorithms of the data read: ZSTD, LZMA, LZ4, ZLIB", Content.WORDS)
    ]
    cpu_seconds: Annotated[float, Field("CPU time of the thread", Unit.SECONDS)]
    bytes_read: Annotated[int, Field("bytes requested from the source", Unit.BYTES)]
    requests: Annotated[int, Field("requests made to the source", Unit.COUNT)]
    columns: Annotated[list[str], Field("columns read, by coffea's names", Content.BRANCHES)]
    branches: Annotated[list[Branch], Field("data read per branch")]
    file_branches: Annotated[int, Field("branches in the file", Unit.COUNT)]
    file_bytes: Annotated[int, Field("size of the file", Unit.BYTES)]
    memory_before: Annotated[int, Field("process memory before", Unit.BYTES)]
    memory_after: Annotated[int, Field("process memory after", Unit.BYTES)]
    memory_peak: Annotated[
        int, Field("peak process memory, including other threads", Unit.BYTES)
    ]
    memory_delta: Annotated[
        int, Field("process memory after minus before", Unit.BYTES, valid=(-LARGEST, LARGEST))
    ]
    sent_bytes: Annotated[
        int, Field("bytes sent over the network, after compression", Unit.BYTES)
    ]
    disk_bytes: Annotated[int, Field("size on disk, serialized and compressed", Unit.BYTES)]
    from_checkpoint: Annotated[
        bool, Field("whether the result came from a checkpoint, without reading or processing")
    ]
    module: Annotated[str, Field("measured I/O layer: POSIX, MPI-IO, STDIO, …", Content.WORDS)]
    rank: Annotated[
        int, Field("rank of the process in its job; -1 for all ranks together", valid=_NUMBERS)
    ]
    opens: Annotated[int, Field("number of opens", Unit.COUNT)]
    reads: Annotated[int, Field("read calls", Unit.COUNT)]
    writes: Annotated[int, Field("write calls", Unit.COUNT)]
    bytes_written: Annotated[int, Field("bytes written", Unit.BYTES)]
    write_seconds: Annotated[float, Field("time in write calls", Unit.SECONDS)]
    metadata_seconds: Annotated[
        float, Field("time in other calls: open, stat, seek", Unit.SECONDS)
    ]
    offset_bytes: Annotated[int, Field("start offset in the file", Unit.BYTES)]


MeasuredThere = Annotated[Measured, Field("measurements")]


class Chunk(Record, total=False):
    """A coffea chunk, or a metadata read of a file, which has no entry range.

    A chunk has two kinds of records: one without ``run_id``, written when its task enters
    the graph, describes the chunk; one with ``run_id`` per attempt has the measurements of
    the worker. Without a cluster there are no tasks: the recorder creates the key and counts
    the attempts. Of metadata reads, only those that fail have a record with ``run_id``.
    """

    key: Key
    run_id: RunId
    dataset: Annotated[str, Field("dataset that the file belongs to", Content.DATASETS)]
    filename: Annotated[str, Field("file, by coffea's name", Content.FILES)]
    treename: Annotated[str, Field("tree or table within the file", Content.BRANCHES)]
    entry_start: Annotated[int, Field("first entry of the chunk", Unit.COUNT)]
    entry_stop: Annotated[int, Field("end of the entry range, exclusive", Unit.COUNT)]
    file_uuid: Annotated[str, Field("uuid stored in the file", Content.IDENTITIES)]
    usermeta: Annotated[Json, Field("the user's metadata of the dataset", Content.METADATA)]
    worker: Worker
    thread: Thread
    start_t: StartT
    stop_t: StopT
    measured: MeasuredThere
    nbytes: NBytes
    exception: ExceptionText


class ClientActivity(Record, total=False):
    """Activity of the program of the recording client: samples of its main thread every 0.1 s.

    Activities: ``wait`` for waiting for Dask, ``dask`` for other work of Dask on behalf of the
    program, such as creating graphs, ``own`` for everything else. Name and filename are those
    of the innermost function that belongs neither to Dask nor to an installed package.
    Consecutive samples of one function are one record. Without such a function there is no
    record, as in a notebook that is idle, and for asynchronous clients.
    """

    client: ClientId
    start_t: StartT
    stop_t: StopT
    activity: Annotated[str, Field("activity: wait, dask or own", Content.WORDS, required=True)]
    name: Annotated[str, Field("name of the function", Content.FUNCTIONS, required=True)]
    filename: Annotated[str, Field("file of its code, without the folder", Content.FILES)]
    measured: MeasuredThere


class Section(Record, total=False):
    """One execution of a section of code that the user named."""

    key: Key
    run_id: RunId
    name: Annotated[
        str,
        Field("name of the section", Content.SPANS, required=True),
    ]
    worker: Worker
    thread: Thread
    start_t: StartT
    stop_t: StopT
    measured: MeasuredThere
    exception: ExceptionText


class WorkerTransition(Record, total=False):
    """A state transition of a task on a worker (opt-in, but for tasks that secede)."""

    worker: Worker
    server_id: ServerId
    key: Key
    start: StateBefore
    finish: StateAfter
    state: Annotated[
        str, Field("resulting state if it is not finish: cancelled or resumed", Content.WORDS)
    ]
    stimulus_id: StimulusId


class Transfer(Record, total=False):
    """A transfer of results between two workers, as reported by one of them (opt-in).

    A transfer has a record per worker that reports it. Clients, and the scheduler on their
    behalf, report none.
    """

    worker: Annotated[str, Field("address of the reporting worker", Content.HOSTS)]
    server_id: ServerId
    start_t: StartT
    stop_t: StopT
    source: Annotated[
        str, Field("address of the sending worker; absent for a client", Content.HOSTS)
    ]
    destination: Annotated[
        str, Field("address of the receiving worker; absent for a client", Content.HOSTS)
    ]
    nbytes: NBytes
    keys: Annotated[
        dict[str, int],
        Field("size of each transferred result, by key", Unit.BYTES, Content.KEYS),
    ]
    measured: MeasuredThere


class Spill(Record, total=False):
    """A result that moved between memory and disk of a worker (opt-in)."""

    worker: Worker
    server_id: ServerId
    key: Key
    start: Annotated[str, Field("previous place: memory or disk", Content.WORDS, required=True)]
    finish: Annotated[str, Field("new place: disk or memory", Content.WORDS, required=True)]
    nbytes: NBytes
    measured: MeasuredThere


class Event(Record, total=False):
    """A Dask event, logged by the scheduler, a worker, a client or the user."""

    topic: Annotated[str, Field("topic of the event", Content.EVENTS, required=True)]
    worker: Worker
    payload: Annotated[Json, Field("the message", Content.EVENTS)]


class Loss(Record, total=False):
    """Records that are missing from the trace."""

    reason: Reason
    record_kind: Annotated[str, Field("kind of the missing records", Content.WORDS)]
    records: Annotated[int, Field("number of missing records", Unit.COUNT)]
    start_t: StartT
    stop_t: StopT
    detail: Annotated[str, Field("details", Content.TEXT)]


Source = Annotated[
    str,
    Field("imported file: the first 16 hexadecimal digits of its SHA-256", Content.IDENTITIES),
]


class Import(Record, total=False):
    """The first record of data that was imported from another program.

    ``roast-analyze import`` appends it to the recording, directly followed by the records
    that it counts, to which its checksum and size refer. All have the ``t`` of the end of the
    recording, so that the duration of the run is unchanged.
    """

    name: Annotated[
        str, Field("program that measured: darshan or yappi", Content.WORDS, required=True)
    ]
    source: Source
    filename: Annotated[str, Field("name of the imported file", Content.FILES)]
    worker: Worker
    pid: Pid
    start_t: StartT
    stop_t: StopT
    versions: Versions
    value: Annotated[
        Json, Field("metadata of the file: job, modules, clock, …", Content.CONFIGURATION)
    ]
    records_by_kind: Annotated[
        dict[str, int],
        Field("number of records that follow", Unit.COUNT, Content.WORDS, required=True),
    ]
    nbytes: Annotated[int, Field("uncompressed size of the lines that follow", Unit.BYTES)]
    crc32: Annotated[int, Field("CRC-32 of the lines that follow")]


class IoFile(Record, total=False):
    """Access of a process, or of all processes of a job, to a file through one I/O layer.

    Imported: a record of a module of Darshan.
    """

    source: Source
    filename: Annotated[str, Field("path of the file", Content.FILES)]
    start_t: StartT
    stop_t: StopT
    measured: MeasuredThere
    value: Annotated[
        Json, Field("non-zero counters of the module, by Darshan's names", Content.WORDS)
    ]


class IoSegment(Record, total=False):
    """One read or write call. Imported: a segment of Darshan's DXT."""

    source: Source
    filename: Annotated[str, Field("path of the file", Content.FILES)]
    host: Annotated[str, Field("host of the process, as Darshan names it", Content.HOSTS)]
    activity: Annotated[str, Field("activity: read or write", Content.WORDS)]
    start_t: StartT
    stop_t: StopT
    nbytes: Annotated[int, Field("requested bytes", Unit.BYTES)]
    measured: MeasuredThere


class Function(Record, total=False):
    """A function measured by a tracing profiler, with its callees. Imported from Yappi.

    ``value`` has ``index``, ``line_number``, ``builtin``, ``calls``, ``actual_calls`` (without
    recursive ones), ``self_seconds`` and ``total_seconds``, ``thread`` and ``thread_name`` and
    ``tag`` if known, ``code_flags`` (Python's ``co_flags``) if the file has them, and
    ``callees``: a list of index, calls, actual_calls, self_seconds and total_seconds of calls
    from this function.
    """

    source: Source
    name: Annotated[str, Field("name of the function", Content.FUNCTIONS, required=True)]
    filename: Annotated[
        str, Field("file of its code; module of a built-in function", Content.FILES)
    ]
    value: Annotated[Json, Field("what was measured", Content.FUNCTIONS)]


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
    "client_program": ClientProgram,
    "wanted_keys": WantedKeys,
    "worker_sample": WorkerSample,
    "scheduler_sample": SchedulerSample,
    "host_sample": HostSample,
    "stall": Stall,
    "client_activity": ClientActivity,
    "cluster_size": ClusterSize,
    "graph": Graph,
    "graph_update": GraphUpdate,
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
