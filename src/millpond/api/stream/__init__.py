"""The stream of live figures."""
