"""The command `podium`."""
