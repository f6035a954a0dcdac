SELECT id FROM {schema}.jobs WHERE node = $1 AND cancelling AND state = 'running'
