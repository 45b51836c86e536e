"""Worlds whose truth is known: bandits, labelled data, and the bundled example."""
