"""The one error of this package."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LONGEST = 400


class ConvertError(Exception):
    """Input that cannot be converted. Its text is one line: where, what was found, what was expected."""

    def __init__(self, place: object, what: str) -> None:
        text = f"{printable(str(place))}: {printable(what)}"
        super().__init__(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")


def printable(text: str) -> str:
    """`text` without characters that break a line or drive a terminal, and without lone surrogates."""
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)
