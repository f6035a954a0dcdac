"""Decisions about recurring tasks."""
