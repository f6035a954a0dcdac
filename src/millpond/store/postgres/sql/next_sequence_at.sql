UPDATE {schema}.exchanges SET sequence = $2 WHERE ctid = $3::tid AND node = $1 AND NOT sealed AND sequence < $2
RETURNING sequence, ctid::text
