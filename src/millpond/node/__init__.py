"""Layer 2: the node, one supervisor process per machine that claims, runs and settles jobs."""
