"""A simulator of a described machine."""
