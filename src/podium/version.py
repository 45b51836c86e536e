"""The version of podium."""

VERSION = "0.2.0"
