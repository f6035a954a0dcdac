"""What both sides of a process pool share: frames, shared pages, pickling."""
