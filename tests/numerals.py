"""Texts compared piece by piece: words must be equal, numbers may differ by one unit of their last printed digit.

Whole numbers count things (rows, ranks) and must be equal. Spaces and line breaks do not matter, because the padding of
a table and the wrapping of a sentence depend on the width of the numbers in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest

NUMBER = re.compile(
    r"(?<![\w.])"  # not inside a word, a version or another number
    r"(?P<sign>(?<![\w)\]])[-−+])?"  # the hyphen of 1-2 is not a sign
    r"(?P<digits>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)"
    r"(?:[eE](?P<exponent>[-+]?\d+))?"
    r"(?P<percent>%?)"
    r"(?!\.?\w)"
)
AROUND = 5  # pieces shown before and after one that differs


def pieces(text: str) -> list[str]:
    """The words, signs and numbers of a text, in order.

    >>> pieces("call_over_65: -.05 [1,234.5, 2e-07], rank 1-2")
    ['call_over_65:', '-.05', '[', '1,234.5', ',', '2e-07', '],', 'rank', '1', '-', '2']
    """
    return list(split(text))


def split(text: str) -> Iterator[str]:
    end = 0
    for match in NUMBER.finditer(text):
        yield from text[end : match.start()].split()
        yield match[0]
        end = match.end()
    yield from text[end:].split()


def value_and_unit(piece: str) -> tuple[float, float] | None:
    """A number and the unit of its last printed digit, 0 for a whole number; None for a word.

    >>> value_and_unit("-1,234.50"), value_and_unit("98.7%"), value_and_unit("3,015"), value_and_unit("1.25e-07")
    ((-1234.5, 0.01), (98.7, 0.1), (3015.0, 0.0), (1.25e-07, 1e-09))
    """
    match = NUMBER.fullmatch(piece)
    if match is None:
        return None
    digits, power = match["digits"].replace(",", ""), int(match["exponent"] or 0)
    value = float(f"{digits}e{power}")
    decimals = len(digits.partition(".")[2])
    whole = not decimals and match["exponent"] is None and not match["percent"]
    unit = 0.0 if whole else float(f"1e{power - decimals}")
    return (-value if match["sign"] in ("-", "−") else value), unit


def agree(a: str, b: str) -> bool:
    """Whether two pieces say the same.

    >>> agree(".95", "0.94"), agree(".95", "0.93"), agree("50%", "51%"), agree("50", "51"), agree("50%", "50")
    (True, False, True, False, False)
    """
    left, right = value_and_unit(a), value_and_unit(b)
    if left is None or right is None or a.endswith("%") != b.endswith("%"):
        return a == b
    return abs(left[0] - right[0]) <= max(left[1], right[1]) * (1 + 1e-9)


def disagreements(expected: str, actual: str) -> list[str]:
    """The places where two texts differ, each with what stands around it; nothing if they say the same.

    After the first word that differs, or is missing, what follows cannot be matched, and only that place is named.
    """
    left, right = pieces(expected), pieces(actual)
    found = []
    for place, (a, b) in enumerate(zip_longest(left, right)):
        if a is not None and b is not None and agree(a, b):
            continue
        around = slice(max(0, place - AROUND), place + AROUND + 1)
        found.append(f"expected {' '.join(left[around])!r}\n     got {' '.join(right[around])!r}")
        if a is None or b is None or value_and_unit(a) is None or value_and_unit(b) is None:
            break
    return found
