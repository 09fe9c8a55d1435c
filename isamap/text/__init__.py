"""From text to checked IR."""
