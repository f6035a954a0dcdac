"""Arguments and results as bytes."""
