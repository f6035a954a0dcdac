"""A discrete-event simulator that drives the very rules a node runs: see `millpond simulate`."""
