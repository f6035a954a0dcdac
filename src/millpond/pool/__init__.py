"""Layer 1: workers on this machine behind the standard Executor interface.

Deliberately empty: the template process imports `millpond.pool.worker.template` and must stay small.
"""
