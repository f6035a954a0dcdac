-- Only what this node holds under the verdict's token ends, and moves to the history. OFFSET 0 hides from the
-- planner that all have one node and state: it would begin with those, and compare each with each.
WITH gone AS (
    DELETE FROM {schema}.jobs AS job
    USING (
        SELECT *, $1::text AS node, 'running' AS held
        FROM unnest(
            $4::text[], $5::bigint[], $6::text[], $7::text[], $8::bytea[], $9::integer[], $10::integer[],
            $11::integer[], $12::integer[], $13::text[]
        ) AS said (id, token, state, reason, result, attempt, errors, crashes, lost, line)
        OFFSET 0
    ) AS verdict
    WHERE
        job.id = verdict.id AND job.token = verdict.token AND job.node = verdict.node
        AND job.state = verdict.held
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
    ON CONFLICT (id) DO UPDATE SET -- an end is never refused, or it would hold up all that end with it
        token = excluded.token, task = excluded.task, queue = excluded.queue,
        unique_key = excluded.unique_key, slots = excluded.slots, has_children = excluded.has_children,
        state = excluded.state, reason = excluded.reason, priority = excluded.priority, rank = excluded.rank,
        run_at = excluded.run_at, created_at = excluded.created_at, started_at = excluded.started_at,
        expires_at = excluded.expires_at, attempt = excluded.attempt, errors = excluded.errors,
        crashes = excluded.crashes, lost = excluded.lost, alone = excluded.alone,
        depends_on = excluded.depends_on, options = excluded.options, payload = excluded.payload,
        unique_for = excluded.unique_for, result = excluded.result, progress = excluded.progress,
        attempts = excluded.attempts, finished_at = excluded.finished_at
)

SELECT id, token, task, queue, unique_key, slots, has_children, state FROM gone
