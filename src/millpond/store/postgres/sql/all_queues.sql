SELECT name, paused, rate FROM {schema}.queues
