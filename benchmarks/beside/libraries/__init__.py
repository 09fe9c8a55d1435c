"""One module per library, each with ``ways(case, threads)``; only a worker process imports them."""
