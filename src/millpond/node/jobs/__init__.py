"""From the claim to the settlement: the jobs that a node has."""
