"""Which instructions compute a statement, and how: matchings and mappings."""
