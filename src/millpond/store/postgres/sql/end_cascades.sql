DELETE FROM {schema}.cascades AS cascade
WHERE
    cascade.parent = ANY($1::uuid[])
    AND NOT EXISTS (SELECT FROM {schema}.dependencies AS link WHERE link.parent = cascade.parent)
