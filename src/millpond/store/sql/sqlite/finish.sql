UPDATE millpond_jobs
SET state = ?2, reason = ?3, result = ?4, finished_at = ?5, attempt = ?6, errors = ?7, crashes = ?8, lost = ?9,
    attempts = attempts || ?10, token = token + ?11, node = NULL, cancelling = 0
WHERE id = ?1
