UPDATE {schema}.history SET parked = NULL WHERE id = ANY($1::text[])
