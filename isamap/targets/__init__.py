"""Compilers and emulators for machines other than this one: what there is, and installing them."""
