"""Logs: files and frames to clean columns, and the rows of a log wherever they lie."""
