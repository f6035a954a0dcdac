"""`millpond top`: how the fleet stands, in a terminal.

The screen needs the `tui` extra; what it shows, made in `view.py` and `tables.py`, needs nothing.
"""
