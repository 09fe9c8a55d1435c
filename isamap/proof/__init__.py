"""Certificates: what is proved of a mapped kernel, by whom, and what is assumed."""
