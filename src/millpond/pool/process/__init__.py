"""The side of a process pool that runs in the program."""
