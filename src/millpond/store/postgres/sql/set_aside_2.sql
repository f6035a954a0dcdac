-- What version 2 has made keeps its rows under other names until they are moved. A node that still writes as version 2
-- finds a table missing.
DO $$
DECLARE
    old record;
BEGIN
    FOR old IN
        SELECT relname FROM pg_class
        WHERE relnamespace = '{schema}'::regnamespace AND relkind IN ('r', 'i')
        ORDER BY relkind DESC
    LOOP
        EXECUTE format('ALTER %s {schema}.%I RENAME TO %I', 'TABLE', old.relname, old.relname || '_2');
    END LOOP;
END
$$;
