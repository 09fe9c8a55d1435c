"""What a kernel means: the reference interpreter."""
