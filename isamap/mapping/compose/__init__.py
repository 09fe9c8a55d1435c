"""Instructions in sequence that stand for one."""
