"""Index expressions as vectors, what operands see of axes, and the room that forms need there."""
