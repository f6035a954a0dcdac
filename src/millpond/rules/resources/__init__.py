"""Decisions about memory and CPU."""
