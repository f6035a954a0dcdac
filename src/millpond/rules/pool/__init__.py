"""Decisions about the workers of one pool."""
