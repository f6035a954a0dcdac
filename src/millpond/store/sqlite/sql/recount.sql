-- From the jobs themselves: for a file that has no tallies yet, and after rows were mended.
DELETE FROM millpond_tallies;
INSERT INTO millpond_tallies (queue, what, number)
SELECT queue, state, count(*) FROM millpond_jobs GROUP BY queue, state
UNION ALL
SELECT queue, 'parked', count(*) FROM millpond_jobs WHERE parked IS NOT NULL AND state = 'queued' GROUP BY queue;
