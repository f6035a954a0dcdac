INSERT INTO millpond_minutes (queue, minute, what, bucket, number) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (minute, queue, what, bucket) DO UPDATE SET number = number + ?5
