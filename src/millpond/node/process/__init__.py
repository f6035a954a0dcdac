"""A node as a process: signals, systemd, orphans."""
