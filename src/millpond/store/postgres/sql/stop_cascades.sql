-- A job that runs again must not have the jobs behind it fall for its earlier end.
DELETE FROM {schema}.cascades WHERE parent = ANY($1::uuid[])
