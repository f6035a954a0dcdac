DELETE FROM {schema}.dependencies AS link
USING unnest($1::uuid[], $2::uuid[]) AS done (parent, child)
WHERE link.parent = done.parent AND link.child = done.child
