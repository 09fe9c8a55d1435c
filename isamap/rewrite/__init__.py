"""Rules that change a kernel into another one that computes the same, each with its lemma."""
