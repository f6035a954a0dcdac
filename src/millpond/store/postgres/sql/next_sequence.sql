UPDATE {schema}.exchanges SET sequence = $2 WHERE node = $1 AND NOT sealed AND sequence < $2
RETURNING sequence, ctid::text
