"""Hardware descriptions: YAML in, frozen data out."""
