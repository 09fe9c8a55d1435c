"""One module per library, each with ``ways(case, threads)``; only a worker process imports them.

``onednn_api`` and ``xsmm.c`` are what two of them call their libraries through.
"""
