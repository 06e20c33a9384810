-- Needs: _jobs
CREATE VIEW jobs AS
SELECT
    role AS process,
    worker,
    "system",
    job_id,
    queue,
    account,
    qos,
    node,
    cores,
    memory_bytes AS memory_limit_bytes,
    array_id,
    array_index,
    name,
    cluster,
    namespace,
    slot,
    nodes,
    node_list,
    start_t,
    end_t,
    host,
    trace_id
FROM _jobs
WHERE "system" IS NOT NULL
ORDER BY trace_id, seq, place;

COMMENT ON VIEW jobs IS 'Batch jobs of scheduler, client and workers. One row per process and batch system, from the environment variables of the process.';
COMMENT ON COLUMN jobs.process IS 'Kind of process: scheduler, client (the recording one) or worker.';
COMMENT ON COLUMN jobs.worker IS 'Address of the worker; null for other processes.';
COMMENT ON COLUMN jobs."system" IS 'SLURM, HTCondor, PBS, LSF, SGE, OAR or Kubernetes.';
COMMENT ON COLUMN jobs.job_id IS 'ID of the job; for Kubernetes, the name of the pod.';
COMMENT ON COLUMN jobs.queue IS 'Queue or partition; for HTCondor, the universe.';
COMMENT ON COLUMN jobs.account IS 'Account that is charged: project of LSF and OAR, accounting group of HTCondor.';
COMMENT ON COLUMN jobs.qos IS 'Quality of service. Only SLURM reports it to a job.';
COMMENT ON COLUMN jobs.node IS 'Name of the node in the batch system.';
COMMENT ON COLUMN jobs.cores IS 'Cores of the node allocated to the job, per process of the job.';
COMMENT ON COLUMN jobs.memory_limit_bytes IS 'Memory of the node allocated to the job.';
COMMENT ON COLUMN jobs.array_id IS 'ID of the job array.';
COMMENT ON COLUMN jobs.array_index IS 'Index of the job in its array.';
COMMENT ON COLUMN jobs.name IS 'Name of the job.';
COMMENT ON COLUMN jobs.cluster IS 'Name of the cluster or of the submitting machine.';
COMMENT ON COLUMN jobs.namespace IS 'Namespace of the pod.';
COMMENT ON COLUMN jobs.slot IS 'Slot of the node, or index of the process in the job.';
COMMENT ON COLUMN jobs.nodes IS 'Number of nodes of the job.';
COMMENT ON COLUMN jobs.node_list IS 'Nodes of the job, separated by commas; SLURM shortens them, as in n[01-12]. At most 10,000 characters. Null for HTCondor and Kubernetes.';
COMMENT ON COLUMN jobs.start_t IS 'Start of the job, in seconds since the epoch.';
COMMENT ON COLUMN jobs.end_t IS 'End of the allocated time, in seconds since the epoch.';
COMMENT ON COLUMN jobs.host IS 'Host name of the operating system.';
COMMENT ON COLUMN jobs.trace_id IS 'ID of the trace.';
