UPDATE {schema}.nodes SET sequence = $2 WHERE id = $1 AND NOT sealed AND sequence < $2 RETURNING sequence
