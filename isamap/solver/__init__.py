"""The one importer of Z3."""
