UPDATE millpond_jobs
SET state = ?2, rank = ?3, run_at = ?4, attempt = ?5, errors = ?6, crashes = ?7, lost = ?8, alone = ?9,
    attempts = CASE
        WHEN length(attempts) < 200 THEN attempts || ?10 ELSE millpond_kept_lines(attempts || ?10)
    END,
    token = token + ?11, node = NULL, started_at = NULL
WHERE id = ?1
