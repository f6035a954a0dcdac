"""Decisions about a store: its schema, its clock, its room."""
