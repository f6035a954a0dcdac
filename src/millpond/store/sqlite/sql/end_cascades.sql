DELETE FROM millpond_cascades
WHERE
    parent IN (SELECT value FROM json_each(?1))
    AND NOT EXISTS (SELECT 1 FROM millpond_dependencies AS link WHERE link.parent = millpond_cascades.parent)
