"""The version of podium."""

VERSION = "0.1.0"
