"""How the logged actions were chosen: known, mixed from several loggers, or estimated."""
