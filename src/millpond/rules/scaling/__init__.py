"""Decisions about how many workers a pool should have."""
