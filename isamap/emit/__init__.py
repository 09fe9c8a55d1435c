"""From a lowered kernel to C."""
