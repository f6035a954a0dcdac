"""What keeps a PostgreSQL server from removing dead rows of this database, as far as the role may see it.

One statement over the server's own views. A session that is idle in a transaction and has neither a
transaction id nor a snapshot holds nothing back, nor do sessions that vacuum, nor those of other databases.
"""

from __future__ import annotations

from typing import Any

from psycopg import Connection

from millpond.rules.store.dead_rows import Holdback

QUERY = """
SELECT
    'transaction',
    'of process ' || pid || coalesce(' (' || nullif(application_name, '') || ')', '')
        || coalesce(' as ' || usename, ''),
    coalesce(backend_xid, backend_xmin)::text,
    extract(EPOCH FROM clock_timestamp() - xact_start)::double precision
FROM pg_stat_activity
WHERE
    coalesce(backend_xid, backend_xmin) IS NOT NULL AND pid <> pg_backend_pid()
    AND usesysid IS NOT NULL -- the server's own processes vacuum, or hold nothing
    AND (datname = current_database() OR datname IS NULL)
    AND pid NOT IN (SELECT vacuum.pid FROM pg_stat_progress_vacuum AS vacuum)
UNION ALL
SELECT
    'prepared transaction', quote_literal(gid), transaction::text,
    extract(EPOCH FROM clock_timestamp() - prepared)::double precision
FROM pg_prepared_xacts
WHERE database = current_database()
UNION ALL
SELECT 'replication slot', quote_literal(slot_name), xmin::text, NULL
FROM pg_replication_slots
WHERE xmin IS NOT NULL
LIMIT 1000
"""


def holdbacks(connection: Connection[Any]) -> list[Holdback]:
    """Everything that holds back this database's clean-up at this moment."""
    return [Holdback(*row) for row in connection.execute(QUERY).fetchall()]
