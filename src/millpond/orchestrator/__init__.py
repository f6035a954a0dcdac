"""Layer 3: plans the ticks of recurring tasks and enqueues them as ordinary jobs."""
