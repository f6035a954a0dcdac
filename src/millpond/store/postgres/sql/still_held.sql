SELECT id, token FROM {schema}.jobs WHERE node = $1 AND id = ANY($2::uuid[]) AND state = 'running'
