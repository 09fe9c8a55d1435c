"""Oracles of a matching: the checker without a solver, and lemmas for every tile."""
