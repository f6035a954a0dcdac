WITH gone AS (
    DELETE FROM {schema}.jobs AS job
    USING unnest(
        $1::text[], $2::text[], $3::text[], $4::bytea[], $5::bigint[], $6::integer[], $7::integer[],
        $8::integer[], $9::integer[], $10::text[], $11::integer[]
    ) AS verdict (id, state, reason, result, ended_at, attempt, errors, crashes, lost, line, raised)
    WHERE job.id = verdict.id
    RETURNING
        job.id, job.task, job.queue, verdict.state, verdict.reason, job.priority, job.rank, job.run_at,
        job.created_at, job.started_at, verdict.ended_at, job.expires_at, verdict.attempt, verdict.errors,
        verdict.crashes, verdict.lost, job.token + verdict.raised AS token, job.alone, job.unique_key,
        job.slots, job.depends_on, job.options, job.payload, job.unique_for, job.has_children, verdict.result,
        job.progress, job.attempts || verdict.line AS attempts
)

INSERT INTO {schema}.history (
    id, task, queue, state, reason, priority, rank, run_at, created_at, started_at, finished_at, expires_at,
    attempt, errors, crashes, lost, token, alone, unique_key, slots, depends_on, options, payload, unique_for,
    has_children, result, progress, attempts
)
SELECT * FROM gone
