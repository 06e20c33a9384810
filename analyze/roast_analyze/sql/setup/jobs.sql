-- Needs: _jobs
CREATE VIEW jobs AS
SELECT
    role AS process,
    worker,
    "system",
    job_id,
    queue,
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
    start_t,
    end_t,
    host,
    trace_id
FROM _jobs
WHERE "system" IS NOT NULL
ORDER BY trace_id, seq, place;

COMMENT ON VIEW jobs IS 'Jobs of a batch system that scheduler, client and workers ran in, by their own environment variables: one row per process and system.';
COMMENT ON COLUMN jobs.process IS 'Which process: scheduler, client (the one that recorded) or worker.';
COMMENT ON COLUMN jobs.worker IS 'Address of the worker; null of others.';
COMMENT ON COLUMN jobs."system" IS 'SLURM, HTCondor, PBS, LSF, SGE, OAR or Kubernetes.';
COMMENT ON COLUMN jobs.job_id IS 'Identity of the job there; of Kubernetes the name of the pod.';
COMMENT ON COLUMN jobs.queue IS 'Queue or partition; of HTCondor the universe.';
COMMENT ON COLUMN jobs.node IS 'Node, as the system names it.';
COMMENT ON COLUMN jobs.cores IS 'Cores that the job got of the node, for each of its processes.';
COMMENT ON COLUMN jobs.memory_limit_bytes IS 'Memory that it got of the node.';
COMMENT ON COLUMN jobs.array_id IS 'Identity of the array that the job belongs to.';
COMMENT ON COLUMN jobs.array_index IS 'Number of the job within its array.';
COMMENT ON COLUMN jobs.name IS 'Name of the job.';
COMMENT ON COLUMN jobs.cluster IS 'Name of the cluster, or of the machine that it was submitted from.';
COMMENT ON COLUMN jobs.namespace IS 'Namespace of the pod.';
COMMENT ON COLUMN jobs.slot IS 'Slot of the node, or number of the process within the job.';
COMMENT ON COLUMN jobs.nodes IS 'Nodes of the job.';
COMMENT ON COLUMN jobs.start_t IS 'When the job began, in seconds since the epoch.';
COMMENT ON COLUMN jobs.end_t IS 'When its time is over, in seconds since the epoch.';
COMMENT ON COLUMN jobs.host IS 'Name of the host, as the operating system names it.';
COMMENT ON COLUMN jobs.trace_id IS 'Identity of the recording.';
