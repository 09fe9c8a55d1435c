"""Searches over schedules."""
