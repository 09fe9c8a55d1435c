"""Why an instruction computes a statement, computes it badly, or does not compute it."""
