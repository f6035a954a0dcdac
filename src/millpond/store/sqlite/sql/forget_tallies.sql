DELETE FROM millpond_tallies WHERE number = 0
