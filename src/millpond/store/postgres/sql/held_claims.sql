SELECT id, token, queue, task FROM {schema}.jobs WHERE state = 'running' AND node = $1 ORDER BY id
