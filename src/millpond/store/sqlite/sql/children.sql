SELECT parent, child, 1 FROM millpond_dependencies
WHERE parent IN (SELECT value FROM json_each(?1))
ORDER BY parent, child
LIMIT ?2
