"""Rules worth trying: a shallow tree found on one part of a log and judged on the other."""
