"""Lets workers notice each change of a limit. A node's template imports it, before the app."""

from millpond.pool.worker.resource_limits import watch

watch.start()
