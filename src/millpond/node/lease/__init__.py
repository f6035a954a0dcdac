"""The lease of a node, and what the node writes beside it."""
