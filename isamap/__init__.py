"""isamap: maps tensor kernels on to the instructions of described hardware."""

__version__ = "0.1.0"
