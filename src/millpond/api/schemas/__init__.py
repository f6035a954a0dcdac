"""What the HTTP API takes and answers, as models."""
