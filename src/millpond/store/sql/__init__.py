"""What every SQL store does, written once: each verb as a generator of queries, without any I/O.

A verb yields a Query or Many and is sent the rows; the drivers in `sqlite.py` and `postgres.py` run them,
each with its own SQL of the same names. So both speak the same language, and so do sync and async callers.
"""
