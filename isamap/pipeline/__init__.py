"""The whole path: read, match, schedule, lower, emit, build, run, check, report.

The only package that knows all the parts.  :mod:`isamap.pipeline.mapped` reads top to bottom.
"""
