"""A noon rush on Millpond: five kinds of work, two nodes on one SQLite file, and much that breaks.

Run it with `make demo` or `python -m examples.rush`. What the tasks do is in `tasks.py`.
"""
