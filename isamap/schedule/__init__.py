"""Order, place and movement around a mapping, and what they cost."""
