"""What the command prints: results as JSON, or as tables that fit the terminal."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Mapping
from typing import Any


def show(result: Any, options: argparse.Namespace, more: Mapping[str, Any] | None = None) -> None:
    """A result as JSON, or as tables that fit the terminal; plain when piped."""
    if options.json:
        plain = not (sys.stdout.encoding or "").lower().startswith("utf")
        data = result.to_dict() | dict(more or {})
        print(json.dumps(data, indent=1, allow_nan=False, ensure_ascii=plain, default=plain_json))
        return
    bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(result.text(terminal_width(), bold))


def plain_json(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    return str(value)


def terminal_width() -> int:
    """Columns of the terminal, between 60 and 120; 80 when piped."""
    return max(60, min(shutil.get_terminal_size((80, 24)).columns, 120)) if sys.stdout.isatty() else 80
