"""The decisions: pure functions of values and `now`. Nothing here reads a clock or touches the system."""
