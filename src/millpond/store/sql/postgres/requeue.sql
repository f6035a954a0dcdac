UPDATE {schema}.jobs AS job
SET state = verdict.state, rank = verdict.rank, run_at = verdict.run_at, attempt = verdict.attempt,
    errors = verdict.errors, crashes = verdict.crashes, lost = verdict.lost, alone = verdict.alone,
    attempts = job.attempts || verdict.line, token = job.token + verdict.raised, node = NULL,
    started_at = NULL
FROM unnest(
    $1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::integer[], $6::integer[], $7::integer[],
    $8::integer[], $9::boolean[], $10::text[], $11::integer[]
) AS verdict (id, state, rank, run_at, attempt, errors, crashes, lost, alone, line, raised)
WHERE job.id = verdict.id
