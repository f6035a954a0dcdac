"""What runs inside the workers of a node."""
