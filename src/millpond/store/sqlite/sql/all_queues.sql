SELECT name, paused, rate FROM millpond_queues
