-- Only what this node holds under the verdict's token ends, and moves to the history. OFFSET 0 hides from the
-- planner that all have one node and state: it would begin with those, and compare each with each.
-- A job that another transaction has locked (one enqueued behind it and not committed yet) is left out: its own end
-- waits for that transaction, and no other end does.
WITH verdict AS MATERIALIZED (
    SELECT said.*, held.place
    FROM unnest(
        $4::uuid[], $5::bigint[], $6::text[], $7::text[], $8::bytea[], $9::integer[], $10::integer[],
        $11::integer[], $12::integer[], $13::text[]
    ) AS said (id, token, state, reason, result, attempt, errors, crashes, lost, line)
    CROSS JOIN LATERAL (
        SELECT job.ctid AS place FROM {schema}.jobs AS job
        WHERE job.id = said.id AND job.token = said.token AND job.node = $1 AND job.state = 'running'
        FOR UPDATE SKIP LOCKED
    ) AS held
),

gone AS (
    DELETE FROM {schema}.jobs AS job
    USING verdict
    WHERE job.ctid = verdict.place
    RETURNING
        job.id, job.token, job.task, job.queue, job.unique_key, job.slots, job.has_children, verdict.state,
        verdict.reason, job.priority, job.rank, job.run_at, job.created_at, job.started_at, job.expires_at,
        verdict.attempt, verdict.errors, verdict.crashes, verdict.lost, job.alone, job.depends_on,
        job.options, job.payload, job.unique_for, verdict.result, job.progress,
        CASE -- the first 10 lines and the last 90; what is shorter than this has fewer
            WHEN octet_length(job.attempts) < 200 THEN job.attempts || verdict.line
            ELSE (
                SELECT CASE
                    WHEN cardinality(line) <= 101 THEN job.attempts || verdict.line
                    ELSE array_to_string(line[:10] || line[cardinality(line) - 90:], E'\n')
                END
                FROM (SELECT string_to_array(job.attempts || verdict.line, E'\n') AS line) AS cut
            )
        END AS attempts
),

kept AS (
    INSERT INTO {schema}.history (
        id, token, task, queue, unique_key, slots, has_children, state, reason, priority, rank, run_at,
        created_at, started_at, expires_at, attempt, errors, crashes, lost, alone, depends_on, options,
        payload, unique_for, result, progress, attempts, finished_at
    )
    SELECT
        id, token + $3::integer, task, queue, unique_key, slots, has_children, state, reason, priority, rank,
        run_at, created_at, started_at, expires_at, attempt, errors, crashes, lost, alone, depends_on,
        options, payload, unique_for, result, progress, attempts, $2::bigint
    FROM gone
)

SELECT id, token, task, queue, unique_key, slots, has_children, state FROM gone
