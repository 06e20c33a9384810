"""View jobs: batch jobs, derived from variables and files or recorded as in format 2.2."""

# fmt: off
SLURM = {
    "SLURM_JOB_ID": "77", "SLURM_JOB_PARTITION": "cms", "SLURMD_NODENAME": "n01",
    "SLURM_CPUS_PER_TASK": "8", "SLURM_MEM_PER_NODE": "16000", "SLURM_JOB_NAME": "dask-worker",
    "SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_JOB_ID": "70", "SLURM_CLUSTER_NAME": "big",
    "SLURM_JOB_NUM_NODES": "1", "SLURM_PROCID": "0", "SLURM_JOB_ACCOUNT": "hep",
    "SLURM_JOB_QOS": "normal", "SLURM_JOB_NODELIST": "n[01-12]",
    "SLURM_JOB_START_TIME": "1700000000", "SLURM_JOB_END_TIME": "1700003600",
}
CONDOR = {"_CONDOR_JOB_AD": "/x/job.ad", "_CONDOR_MACHINE_AD": "/x/machine.ad"}
JOB_AD = (
    'ClusterId = 123\nProcId = 4\nRequestCpus = 2\nRequestMemory = 4000\nJobUniverse = 5\n'
    'GlobalJobId = "schedd.site#123.4#1700000000"\nJobStartDate = 1700000001'
)
MACHINE_AD = 'Machine = "wn3.site"\nName = "slot1_7@wn3.site"\nCpus = 3\nMemory = 4096'

#: Variables, files and the row of `jobs`.
JOBS = [
    (
        SLURM, {},
        {
            "system": "SLURM", "job_id": "77", "queue": "cms", "node": "n01", "cores": 8,
            "memory_limit_bytes": 16_000 * 2**20, "name": "dask-worker", "array_index": "3",
            "array_id": "70", "cluster": "big", "nodes": 1, "slot": "0", "account": "hep",
            "qos": "normal", "node_list": "n[01-12]",
            "start_t": 1_700_000_000, "end_t": 1_700_003_600,
        },
    ),
    (
        {"SLURM_JOB_ID": "78", "SLURM_CPUS_ON_NODE": "4", "SLURM_MEM_PER_CPU": "2000"}, {},
        {"system": "SLURM", "job_id": "78", "cores": 4, "memory_limit_bytes": 8_000 * 2**20},
    ),
    (
        {"SLURM_JOB_ID": " " + "x" * 999, "SLURM_CPUS_PER_TASK": "many",
         "SLURM_NNODES": "8(x2)"},
        {},
        {"system": "SLURM", "job_id": "x" * 200, "nodes": 8},
    ),
    (
        {"SLURM_JOB_ID": "79", "SLURM_MEM_PER_NODE": "9" * 15}, {},
        {"system": "SLURM", "job_id": "79"},
    ),
    (
        {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "MEM_LIMIT": "18446744073709551615"}, {},
        {"system": "Kubernetes"},
    ),
    (
        CONDOR, {"/x/job.ad": JOB_AD, "/x/machine.ad": MACHINE_AD},
        {
            "system": "HTCondor", "job_id": "123.4", "queue": "vanilla", "node": "wn3.site",
            "slot": "slot1_7", "cluster": "schedd.site", "cores": 3,
            "memory_limit_bytes": 4096 * 2**20, "start_t": 1_700_000_001,
        },
    ),
    (
        {**CONDOR, "_CONDOR_SLOT": "slot9"},
        {"/x/job.ad": JOB_AD + '\nRemoteHost = "slot2@wn4"\nJobBatchName = "b"'
                               '\nAccountingGroup = "cms.me"'},
        {
            "system": "HTCondor", "job_id": "123.4", "queue": "vanilla", "node": "wn4",
            "slot": "slot9", "cluster": "schedd.site", "cores": 2, "name": "b",
            "account": "cms.me",
            "memory_limit_bytes": 4000 * 2**20, "start_t": 1_700_000_001,
        },
    ),
    (CONDOR, {}, {"system": "HTCondor"}),
    (CONDOR, {"/x/machine.ad": f"Memory = {10**15}"}, {"system": "HTCondor"}),
    (
        {
            "PBS_JOBID": "9.server", "PBS_QUEUE": "workq", "PBS_JOBNAME": "w", "NCPUS": "16",
            "HOSTNAME": "n2", "PBS_ARRAYID": "5", "PBS_NODENUM": "0", "PBS_RESC_MEM": "1.5gb",
            "PBS_ACCOUNT": "hep", "PBS_NODEFILE": "/x/9.server",
        },
        {"/x/9.server": "n2\nn1"},
        {
            "system": "PBS", "job_id": "9.server", "queue": "workq", "name": "w", "cores": 16,
            "node": "n2", "array_index": "5", "slot": "0", "account": "hep",
            "node_list": "n2,n1",
            "memory_limit_bytes": 3 * 2**29,
        },
    ),
    (
        {
            "LSB_JOBID": "5", "LSB_QUEUE": "normal", "LSB_HOSTS": "b b a a",
            "LSB_PROJECT_NAME": "hep",
            "LSB_JOBINDEX": "0", "LSB_CGROUP_MEM_LIMIT": "4 GB",
        }, {},
        {
            "system": "LSF", "job_id": "5", "queue": "normal", "node": "b", "nodes": 2,
            "account": "hep", "node_list": "a,b", "cores": 4, "memory_limit_bytes": 4 * 2**30,
        },
    ),
    (
        {
            "SGE_ROOT": "/sge", "JOB_ID": "11", "QUEUE": "all.q", "NSLOTS": "2",
            "SGE_TASK_ID": "undefined", "NHOSTS": "1", "PE_HOSTFILE": "/x/pe_hostfile",
        },
        {"/x/pe_hostfile": "h1"},
        {
            "system": "SGE", "job_id": "11", "queue": "all.q", "cores": 2, "nodes": 1,
            "node_list": "h1",
        },
    ),
    (
        {
            "OAR_JOB_ID": "4", "OAR_ARRAY_INDEX": "2", "OAR_JOB_NAME": "o", "HOSTNAME": "h",
            "OAR_PROJECT_NAME": "hep",
        }, {},
        {
            "system": "OAR", "job_id": "4", "array_index": "2", "name": "o", "node": "h",
            "account": "hep",
        },
    ),
    (
        {
            "KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "dask-worker-abc",
            "NODE_NAME": "node-7", "CPU_LIMIT": "4", "MEMORY_LIMIT": "8Gi",
        },
        {"/var/run/secrets/kubernetes.io/serviceaccount/namespace": "physics"},
        {
            "system": "Kubernetes", "job_id": "dask-worker-abc", "namespace": "physics",
            "node": "node-7", "cores": 4, "memory_limit_bytes": 8 * 2**30,
        },
    ),
]
# fmt: on


def test_jobs_are_derived_from_variables_and_files(open_trace, process_facts):
    facts = []
    for number, (variables, files, _) in enumerate(JOBS):
        texts = [{"path": path, "text": text} for path, text in files.items()]
        facts += process_facts("worker", variables=variables, files=texts, worker=f"w{number}")

    found = open_trace(*facts).frame("jobs").drop("process", "worker", "trace_id").to_dicts()
    for row, (_, _, job) in zip(found, JOBS, strict=True):
        assert {name: value for name, value in row.items() if value is not None} == job


def test_processes_with_several_jobs_or_none(rows, process_facts, worker):
    """The job of `w0` is derived from variables; those of `w1` were recorded as such."""
    variables = {"KUBERNETES_SERVICE_HOST": "x", "SLURM_JOB_ID": "7"}
    job = {"system": "SLURM", "job_id": "7", "queue": "cms", "cores": 8, "node": "n1"}
    jobs = [{**job, "memory_bytes": 100}, {"system": "Kubernetes", "job_id": "p"}]

    assert rows(
        'SELECT process, worker, "system", job_id, queue, node, cores, memory_limit_bytes, '
        "host FROM jobs",
        *process_facts("scheduler", jobs=[]),
        *process_facts("worker", variables=variables, worker="w0", machine={"host": "n1"}),
        *process_facts("worker", jobs=jobs, worker="w1", machine={"host": "n1.site"}),
        *process_facts("client"),
        worker("w2"),
    ) == [
        ("worker", "w0", "SLURM", "7", None, None, None, None, "n1"),
        ("worker", "w0", "Kubernetes", None, None, None, None, None, "n1"),
        ("worker", "w1", "SLURM", "7", "cms", "n1", 8, 100, "n1.site"),
        ("worker", "w1", "Kubernetes", "p", None, None, None, None, "n1.site"),
    ]
