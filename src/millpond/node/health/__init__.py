"""The health port of a node."""
