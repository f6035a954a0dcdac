"""Decisions about a node as a whole: its report, its health, its alerts, its end."""
