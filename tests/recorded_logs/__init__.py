"""The fixed logs of `record.py`, and the questions that are asked about each of them.

They use only names that `podium` exports, so that the modules behind these names may move.
"""

from recorded_logs import files, larger, methods, policies, propensities, shapes, worlds
from recorded_logs.case import LOGS, answers_about

__all__ = ["LOGS", "answers_about", "files", "larger", "methods", "policies", "propensities", "shapes", "worlds"]
