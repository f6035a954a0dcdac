"""Decisions about jobs: their states, retries, rates, and how many travel at once."""
