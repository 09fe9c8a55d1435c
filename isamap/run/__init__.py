"""Compilers, workers and runners."""
