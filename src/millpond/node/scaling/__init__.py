"""How many workers each pool of a node gets."""
