SELECT parent, state FROM millpond_cascades ORDER BY parent LIMIT ?1
