"""Whether each instruction of a description does what its statements say, bit for bit."""
