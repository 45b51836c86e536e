"""What users of other tools already have, as logs and policies, and back: one small module per tool.

Loaded when used, as `from podium.adapters import obp`.
"""
