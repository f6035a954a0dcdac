SELECT queue, minute, what, bucket, number FROM millpond_statistics WHERE minute >= ?1 AND minute < ?2
