"""What batch systems say of a job, in their own variables and files."""

import pytest

from roast_recorder.batch import jobs


def test_no_job():
    assert jobs({"HOME": "/root", "HOSTNAME": "h"}) == []


@pytest.mark.parametrize(
    ("variables", "job"),
    [
        (
            {
                "SLURM_JOB_ID": "77", "SLURM_JOB_PARTITION": "cms", "SLURMD_NODENAME": "n01",
                "SLURM_CPUS_PER_TASK": "8", "SLURM_MEM_PER_NODE": "16000",
                "SLURM_JOB_NAME": "dask-worker", "SLURM_ARRAY_TASK_ID": "3",
                "SLURM_ARRAY_JOB_ID": "70", "SLURM_CLUSTER_NAME": "big",
                "SLURM_JOB_NUM_NODES": "1", "SLURM_PROCID": "0",
                "SLURM_JOB_START_TIME": "1700000000", "SLURM_JOB_END_TIME": "1700003600",
                "SLURM_JOB_ACCOUNT": "canary", "SLURM_JWT": "canary",
            },
            {
                "system": "SLURM", "job_id": "77", "queue": "cms", "node": "n01", "cores": 8,
                "memory_bytes": 16_000 * 2**20, "name": "dask-worker", "array_index": "3",
                "array_id": "70", "cluster": "big", "nodes": 1, "slot": "0",
                "start_t": 1_700_000_000, "end_t": 1_700_003_600,
            },
        ),
        (
            {"SLURM_JOB_ID": "78", "SLURM_CPUS_ON_NODE": "4", "SLURM_MEM_PER_CPU": "2000"},
            {"system": "SLURM", "job_id": "78", "cores": 4, "memory_bytes": 8_000 * 2**20},
        ),
        (
            {
                "PBS_JOBID": "9.server", "PBS_QUEUE": "workq", "PBS_JOBNAME": "w",
                "NCPUS": "16", "HOSTNAME": "n2", "PBS_O_PATH": "canary",
            },
            {
                "system": "PBS", "job_id": "9.server", "queue": "workq", "name": "w",
                "cores": 16, "node": "n2",
            },
        ),
        (
            {
                "LSB_JOBID": "5", "LSB_QUEUE": "normal", "LSB_HOSTS": "a a b b",
                "LSB_JOBINDEX": "0", "LSB_CGROUP_MEM_LIMIT": "4 GB",
            },
            {
                "system": "LSF", "job_id": "5", "queue": "normal", "node": "a", "nodes": 2,
                "cores": 4, "memory_bytes": 4 * 2**30,
            },
        ),
        (
            {
                "SGE_ROOT": "/sge", "JOB_ID": "11", "QUEUE": "all.q", "NSLOTS": "2",
                "SGE_TASK_ID": "undefined",
            },
            {"system": "SGE", "job_id": "11", "queue": "all.q", "cores": 2},
        ),
        (
            {
                "KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "dask-worker-abc",
                "POD_NAMESPACE": "physics", "NODE_NAME": "node-7", "CPU_LIMIT": "4",
                "MEMORY_LIMIT": "8Gi", "API_TOKEN": "canary",
            },
            {
                "system": "Kubernetes", "job_id": "dask-worker-abc", "namespace": "physics",
                "node": "node-7", "cores": 4, "memory_bytes": 8 * 2**30,
            },
        ),
    ],
    ids=["slurm", "slurm, memory by core", "pbs", "lsf", "sge", "kubernetes"],
)  # fmt: skip
def test_a_job(tmp_path, variables, job):
    [told] = jobs(variables, tmp_path)

    assert told == job


def test_a_job_of_htcondor(tmp_path):
    (tmp_path / "job.ad").write_text(
        'ClusterId = 123\nProcId = 4\nRequestCpus = 2\nRequestMemory = 4000\nJobUniverse = 5\n'
        'GlobalJobId = "schedd.site#123.4#1700000000"\nJobStartDate = 1700000001\n'
        'Environment = "TOKEN=canary"\nArgs = "--password canary"\nOwner = "canary"\n'
    )  # fmt: skip
    (tmp_path / "machine.ad").write_text(
        'Machine = "wn3.site"\nName = "slot1_7@wn3.site"\nCpus = 2\nMemory = 4096\n'
    )
    variables = {
        "_CONDOR_JOB_AD": str(tmp_path / "job.ad"),
        "_CONDOR_MACHINE_AD": str(tmp_path / "machine.ad"),
    }

    assert jobs(variables, tmp_path) == [
        {
            "system": "HTCondor", "job_id": "123.4", "queue": "vanilla", "node": "wn3.site",
            "slot": "slot1_7", "cluster": "schedd.site", "cores": 2,
            "memory_bytes": 4096 * 2**20, "start_t": 1_700_000_001,
        }
    ]  # fmt: skip


def test_an_ad_that_is_missing_or_nonsense(tmp_path):
    (tmp_path / "ad").write_bytes(b"\xff\xfe ClusterId\n= = =\n" * 100)

    for name in ("ad", "missing"):
        assert jobs({"_CONDOR_JOB_AD": str(tmp_path / name)}) == [{"system": "HTCondor"}]


def test_the_namespace_of_a_pod_is_read_and_nothing_beside_it(tmp_path):
    account = tmp_path / "var/run/secrets/kubernetes.io/serviceaccount"
    account.mkdir(parents=True)
    (account / "namespace").write_text("physics")
    (account / "token").write_text("canary")

    [told] = jobs({"KUBERNETES_SERVICE_HOST": "x", "HOSTNAME": "pod"}, tmp_path)

    assert told == {"system": "Kubernetes", "job_id": "pod", "namespace": "physics"}


def test_numbers_that_are_none_and_long_texts():
    [told] = jobs(
        {"SLURM_JOB_ID": "x" * 9_999, "SLURM_CPUS_PER_TASK": "many", "SLURM_NNODES": "8(x2)"}
    )

    assert told == {"system": "SLURM", "job_id": "x" * 200, "nodes": 8}
