"""From a schedule to loops, movements and instruction calls."""
