UPDATE millpond_jobs
SET state = ?6, reason = ?7, result = ?8, finished_at = ?2, attempt = ?9, errors = ?10, crashes = ?11, lost = ?12,
    attempts = CASE
        WHEN length(attempts) < 200 THEN attempts || ?13 ELSE millpond_kept_lines(attempts || ?13)
    END,
    token = token + ?3, node = NULL, cancelling = 0
WHERE id = ?4 AND token = ?5 AND node = ?1 AND state = 'running'
