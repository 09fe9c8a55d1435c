"""Instructions that kernels execute, beside the fewest that a description allows."""
