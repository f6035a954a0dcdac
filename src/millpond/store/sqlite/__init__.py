"""The store in an SQLite file, or in memory."""
