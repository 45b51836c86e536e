"""Characters that do not show, in names of columns and in labels of actions."""

from __future__ import annotations

import re
from collections.abc import Iterable

NOWHERE = re.compile("[\u200b\u2060\ufeff\u00ad]")  # characters without width
SPACES = re.compile("[\u00a0\u202f\u2007\u2009\u3000]")
AROUND = " \t\r\n\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad\u00a0\u202f\u2007\u2009\u3000"


def visible(text: str) -> str:
    """A text without what does not show: characters without width, and spaces around it.

    >>> visible("\\ufeffage\\u00a0"), visible("net\\u00a0price ")
    ('age', 'net price')
    """
    return SPACES.sub(" ", NOWHERE.sub("", text)).strip(AROUND)


def same_to_see(labels: Iterable[str]) -> dict[str, str]:
    """Labels of which several look the same, and that look of each.

    >>> same_to_see(["call", "call ", "mail "])
    {'call': 'call', 'call ': 'call'}
    """
    looks: dict[str, list[str]] = {}
    for label in dict.fromkeys(labels):
        looks.setdefault(visible(label), []).append(label)
    return {label: look for look, own in looks.items() if look and len(own) > 1 for label in own}
