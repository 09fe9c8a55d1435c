"""Fragments: what instructions take and leave, and the instructions that bring them there."""
