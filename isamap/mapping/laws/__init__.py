"""The laws of a legal matching: stated, enumerated by the solver, decided without it."""
