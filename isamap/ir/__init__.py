"""Kernels, instructions and programs as data, and questions about them."""
