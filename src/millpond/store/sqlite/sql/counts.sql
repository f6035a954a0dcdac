SELECT queue, what, number FROM millpond_tallies WHERE number <> 0
