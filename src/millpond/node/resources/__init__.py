"""The memory and CPU that jobs need, have and use."""
