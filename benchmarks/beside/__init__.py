"""The parts of ``side_by_side.py``: cases, inputs, right answers, libraries, workers, reports."""
