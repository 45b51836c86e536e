"""Comparisons: what they rest on, the answer, and the checks that go with it."""
