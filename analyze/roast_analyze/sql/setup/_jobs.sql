-- Needs: _job_ad, _job_bytes, _job_hosts, _job_integer, _job_text, _processes
-- Jobs of batch systems, from the environment variables and files of the processes in them.
-- `place` orders the systems of one process.
CREATE VIEW _jobs AS
WITH processes AS (
    SELECT
        trace_id,
        seq,
        role,
        worker,
        process.machine.host AS host,
        process.variables AS v,
        process.files AS files
    FROM _processes
    WHERE json_type(process.variables) = 'OBJECT'
),
slurm AS (
    SELECT
        *,
        1 AS place,
        'SLURM' AS "system",
        _job_text(v, ['SLURM_JOB_ID', 'SLURM_JOBID']) AS job_id,
        _job_text(v, ['SLURM_ARRAY_JOB_ID']) AS array_id,
        _job_text(v, ['SLURM_ARRAY_TASK_ID']) AS array_index,
        _job_text(v, ['SLURM_JOB_NAME']) AS name,
        _job_text(v, ['SLURM_JOB_PARTITION']) AS queue,
        _job_text(v, ['SLURM_JOB_ACCOUNT']) AS account,
        _job_text(v, ['SLURM_JOB_QOS']) AS qos,
        -- Shortened: n[01-12,20].
        trim(coalesce(v ->> 'SLURM_JOB_NODELIST', v ->> 'SLURM_NODELIST')) AS node_list,
        _job_text(v, ['SLURM_CLUSTER_NAME']) AS cluster,
        _job_text(v, ['SLURMD_NODENAME']) AS node,
        _job_text(v, ['SLURM_PROCID']) AS slot,
        _job_integer(v, ['SLURM_JOB_NUM_NODES', 'SLURM_NNODES']) AS nodes,
        _job_integer(v, ['SLURM_CPUS_PER_TASK', 'SLURM_CPUS_ON_NODE']) AS cores,
        -- A megabyte of Slurm is 2^20 bytes.
        -- As DOUBLE, because a product of integers can overflow.
        try_cast(1048576::DOUBLE * coalesce(
            _job_integer(v, ['SLURM_MEM_PER_NODE']),
            nullif(cores, 0)::DOUBLE * _job_integer(v, ['SLURM_MEM_PER_CPU'])
        ) AS BIGINT) AS memory_bytes,
        _job_integer(v, ['SLURM_JOB_START_TIME'])::DOUBLE AS start_t,
        _job_integer(v, ['SLURM_JOB_END_TIME'])::DOUBLE AS end_t
    FROM processes
    WHERE v ->> 'SLURM_JOB_ID' <> ''
),
ads AS (
    SELECT
        *,
        coalesce([f.text FOR f IN files IF f.path = v ->> '_CONDOR_JOB_AD'][1], '') AS job,
        coalesce([f.text FOR f IN files IF f.path = v ->> '_CONDOR_MACHINE_AD'][1], '') AS machine
    FROM processes
    WHERE v ->> '_CONDOR_JOB_AD' <> ''
),
htcondor AS (
    SELECT
        *,
        2 AS place,
        'HTCondor' AS "system",
        _job_ad(job, 'ClusterId') || '.' || coalesce(_job_ad(job, 'ProcId'), 'None') AS job_id,
        _job_ad(job, 'JobBatchName') AS name,
        -- HTCondor has no queues. The universe, which is recorded as a number, is most similar.
        CASE _job_ad(job, 'JobUniverse')
            WHEN '5' THEN 'vanilla'
            WHEN '7' THEN 'scheduler'
            WHEN '9' THEN 'grid'
            WHEN '10' THEN 'java'
            WHEN '11' THEN 'parallel'
            WHEN '12' THEN 'local'
            WHEN '13' THEN 'vm'
        END AS queue,
        _job_ad(job, 'AccountingGroup') AS account,
        nullif(split_part(_job_ad(job, 'GlobalJobId'), '#', 1), '') AS cluster,
        -- slot1_7@host
        coalesce(_job_ad(machine, 'Name'), _job_ad(job, 'RemoteHost'), '') AS slot_name,
        coalesce(
            _job_ad(machine, 'Machine'), nullif(regexp_extract(slot_name, '[^@]*$'), '')
        ) AS node,
        coalesce(
            _job_text(v, ['_CONDOR_SLOT']), nullif(regexp_extract(slot_name, '^(.*)@', 1), '')
        ) AS slot,
        try_cast(
            coalesce(_job_ad(machine, 'Cpus'), _job_ad(job, 'RequestCpus')) AS BIGINT
        ) AS cores,
        try_cast(1048576::DOUBLE * try_cast(
            coalesce(_job_ad(machine, 'Memory'), _job_ad(job, 'RequestMemory')) AS BIGINT
        ) AS BIGINT) AS memory_bytes,
        try_cast(_job_ad(job, 'JobStartDate') AS DOUBLE) AS start_t
    FROM ads
),
pbs AS (
    SELECT
        *,
        3 AS place,
        'PBS' AS "system",
        _job_text(v, ['PBS_JOBID']) AS job_id,
        _job_text(v, ['PBS_ARRAY_INDEX', 'PBS_ARRAYID']) AS array_index,
        _job_text(v, ['PBS_JOBNAME']) AS name,
        _job_text(v, ['PBS_QUEUE']) AS queue,
        _job_text(v, ['PBS_ACCOUNT']) AS account,
        _job_hosts(files, v ->> 'PBS_NODEFILE') AS node_list,
        _job_text(v, ['PBS_SERVER']) AS cluster,
        _job_text(v, ['PBS_NODENAME', 'HOSTNAME']) AS node,
        _job_text(v, ['PBS_NODENUM', 'PBS_VNODENUM']) AS slot,
        _job_integer(v, ['PBS_NUM_NODES']) AS nodes,
        _job_integer(v, ['NCPUS', 'PBS_NUM_PPN', 'PBS_NP']) AS cores,
        _job_bytes(v, ['PBS_RESC_MEM', 'PBS_RESC_TOTAL_MEM']) AS memory_bytes
    FROM processes
    WHERE v ->> 'PBS_JOBID' <> ''
),
lsf AS (
    SELECT
        *,
        4 AS place,
        'LSF' AS "system",
        -- One word per core: a a b b.
        regexp_extract_all(coalesce(v ->> 'LSB_HOSTS', ''), '\S+') AS hosts,
        _job_text(v, ['LSB_JOBID']) AS job_id,
        nullif(_job_text(v, ['LSB_JOBINDEX']), '0') AS array_index,
        _job_text(v, ['LSB_JOBNAME']) AS name,
        _job_text(v, ['LSB_QUEUE']) AS queue,
        _job_text(v, ['LSB_PROJECT_NAME']) AS account,
        nullif(array_to_string(list_sort(list_distinct(hosts)), ','), '') AS node_list,
        _job_text(v, ['LSF_CLUSTER_NAME']) AS cluster,
        coalesce(left(hosts[1], 200), _job_text(v, ['HOSTNAME'])) AS node,
        nullif(len(list_distinct(hosts)), 0) AS nodes,
        coalesce(
            _job_integer(v, ['LSB_DJOB_NUMPROC', 'LSB_MAX_NUM_PROCESSORS']),
            nullif(len(hosts), 0)
        ) AS cores,
        _job_bytes(v, ['LSB_CGROUP_MEM_LIMIT']) AS memory_bytes
    FROM processes
    WHERE v ->> 'LSB_JOBID' <> ''
),
sge AS (
    SELECT
        *,
        5 AS place,
        'SGE' AS "system",
        _job_text(v, ['JOB_ID']) AS job_id,
        nullif(_job_text(v, ['SGE_TASK_ID']), 'undefined') AS array_index,
        _job_text(v, ['JOB_NAME']) AS name,
        _job_text(v, ['QUEUE']) AS queue,
        _job_hosts(files, v ->> 'PE_HOSTFILE') AS node_list,
        _job_text(v, ['SGE_CLUSTER_NAME']) AS cluster,
        _job_text(v, ['HOSTNAME']) AS node,
        _job_integer(v, ['NHOSTS']) AS nodes,
        _job_integer(v, ['NSLOTS']) AS cores
    FROM processes
    WHERE v ->> 'SGE_ROOT' <> ''
),
oar AS (
    SELECT
        *,
        6 AS place,
        'OAR' AS "system",
        _job_text(v, ['OAR_JOB_ID']) AS job_id,
        _job_text(v, ['OAR_ARRAY_INDEX']) AS array_index,
        _job_text(v, ['OAR_JOB_NAME']) AS name,
        _job_text(v, ['OAR_PROJECT_NAME']) AS account,
        _job_hosts(files, v ->> 'OAR_NODEFILE') AS node_list,
        _job_text(v, ['HOSTNAME']) AS node
    FROM processes
    WHERE v ->> 'OAR_JOB_ID' <> ''
),
kubernetes AS (
    SELECT
        *,
        7 AS place,
        'Kubernetes' AS "system",
        -- Names that manifests commonly give to fields of the downward API.
        _job_text(v, ['POD_NAME', 'MY_POD_NAME', 'K8S_POD_NAME', 'HOSTNAME']) AS job_id,
        _job_text(v, ['DASK_WORKER_NAME']) AS name,
        coalesce(
            _job_text(v, ['POD_NAMESPACE', 'MY_POD_NAMESPACE', 'K8S_NAMESPACE']),
            nullif(trim([f.text FOR f IN files IF f.path LIKE '%/serviceaccount/namespace'][1]), '')
        ) AS namespace,
        _job_text(v, ['NODE_NAME', 'MY_NODE_NAME', 'K8S_NODE_NAME']) AS node,
        _job_integer(v, ['CPU_LIMIT', 'MY_CPU_LIMIT']) AS cores,
        _job_bytes(v, ['MEMORY_LIMIT', 'MEM_LIMIT', 'MY_MEM_LIMIT']) AS memory_bytes
    FROM processes
    WHERE v ->> 'KUBERNETES_SERVICE_HOST' <> ''
)
SELECT trace_id, seq, role, worker, process.machine.host AS host, 0 AS place, unnest(process.jobs, max_depth := 2)
FROM _processes
UNION ALL BY NAME
SELECT * EXCLUDE (v, files) FROM slurm
UNION ALL BY NAME
SELECT * EXCLUDE (v, files, job, machine, slot_name) FROM htcondor
UNION ALL BY NAME
SELECT * EXCLUDE (v, files) FROM pbs
UNION ALL BY NAME
SELECT * EXCLUDE (v, files, hosts) FROM lsf
UNION ALL BY NAME
SELECT * EXCLUDE (v, files) FROM sge
UNION ALL BY NAME
SELECT * EXCLUDE (v, files) FROM oar
UNION ALL BY NAME
SELECT * EXCLUDE (v, files) FROM kubernetes;
