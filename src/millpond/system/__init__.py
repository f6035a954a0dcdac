"""The machine and this process as the kernel shows them: clocks, control groups, /proc, system calls."""
