"""The bench of everyday logs: weak effects, sparse rewards, ties, many policies and real randomized trials."""
