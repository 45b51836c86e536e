"""Estimates of policy values: baselines, methods, row terms, and the sums that they are read off."""
