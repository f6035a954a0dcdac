-- Does the node still hold a job, locked or not?
SELECT id FROM {schema}.jobs WHERE state = 'running' AND node = $1 LIMIT 1
