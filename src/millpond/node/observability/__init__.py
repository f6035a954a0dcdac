"""Events, metrics, alerts and logs of a node."""
