SELECT id FROM {schema}.jobs WHERE node = $1 AND state = 'running' AND cancelling
