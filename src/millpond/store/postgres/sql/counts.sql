SELECT queue, what, sum(number)::bigint FROM {schema}.tallies GROUP BY queue, what HAVING sum(number) <> 0
