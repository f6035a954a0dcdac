"""What runs inside the test processes; nothing here is imported by the pytest process."""
