UPDATE {schema}.jobs AS job
SET state = verdict.state, rank = verdict.rank, run_at = verdict.run_at, attempt = verdict.attempt,
    errors = verdict.errors, crashes = verdict.crashes, lost = verdict.lost, alone = verdict.alone,
    attempts = CASE -- the first 10 lines and the last 90; what is shorter than this has fewer
        WHEN octet_length(job.attempts) < 200 THEN job.attempts || verdict.line
        ELSE (
            SELECT CASE
                WHEN cardinality(line) <= 101 THEN job.attempts || verdict.line
                ELSE array_to_string(line[:10] || line[cardinality(line) - 90:], E'\n')
            END
            FROM (SELECT string_to_array(job.attempts || verdict.line, E'\n') AS line) AS cut
        )
    END,
    token = job.token + verdict.raised, node = NULL,
    started_at = NULL
FROM unnest(
    $1::uuid[], $2::text[], $3::bigint[], $4::bigint[], $5::integer[], $6::integer[], $7::integer[],
    $8::integer[], $9::boolean[], $10::text[], $11::integer[]
) AS verdict (id, state, rank, run_at, attempt, errors, crashes, lost, alone, line, raised)
WHERE job.id = verdict.id
