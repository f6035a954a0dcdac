SELECT node FROM millpond_graves WHERE node = ?1
