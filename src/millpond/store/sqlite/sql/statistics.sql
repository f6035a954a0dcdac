SELECT queue, minute, what, bucket, number FROM millpond_minutes WHERE minute >= ?1 AND minute < ?2
