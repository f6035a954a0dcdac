"""Who may use the HTTP API: tokens, sessions, the gate."""
