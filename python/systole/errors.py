"""What can go wrong: every error carries the line that the program printed."""

from __future__ import annotations


class SystoleError(Exception):
    """An error of a call. `str()` is one line, or one a cause: where, what was found, expected."""


class InputError(SystoleError):
    """Bad input or usage, the program's exit code 2."""


class CheckError(SystoleError):
    """A check that was asked for does not hold, exit code 1.

    `document` has the statistics of that run, if the program printed them.
    """

    def __init__(self, line: str, document: dict[str, object] | None = None) -> None:
        super().__init__(line)
        self.document = document


class ProgramError(SystoleError):
    """An error of the program itself, exit code 3, or a crash of it."""


class KilledError(SystoleError):
    """The process was ended by a signal from outside, so that nothing is known about its input."""
