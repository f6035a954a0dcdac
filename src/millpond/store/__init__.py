"""Where everything durable lives: one protocol, three engines, the same semantics on each.

`open_store(url)` is the only way in. A store never knows what a task is, never runs user code and never
decides policy: it is told Transitions, which come from `rules/`.
"""
