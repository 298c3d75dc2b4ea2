"""Expressions of space files: what they compute, and what they refuse."""

from __future__ import annotations

import pytest

from systole import InputError
from systole.exploration.expressions import Expression

VALUES = {"array.rows": 16, "scratchpad.kib": 64, "length": 128, "word": "full", "f": 0.5}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("array.rows * 2 + scratchpad.kib // 3", 53),
        ("2 ** -1 + f", 1.0),
        ("array.rows == 16 and not scratchpad.kib > 64", True),
        ("16 <= scratchpad.kib < 64", False),
        ("1 < 2 > 5 or word == 'full'", True),
        ("array.rows if length > 100 else 0", 16),
        ("min(array.rows, 3) + max(1, 2, f) + abs(-4) + ceil(f) + log2(8)", 13.0),
        ("scratchpad.kib % 7", 1),
        ("-array.rows / 4", -4.0),
    ],
)
def test_values(text: str, value: object) -> None:
    assert Expression(text)(VALUES) == value


def test_and_looks_no_further_than_it_must() -> None:
    assert Expression("f > 1 and 1 / 0 > 0")(VALUES) is False


def test_names() -> None:
    assert Expression("array.rows + length * f").names == {"array.rows", "length", "f"}


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "().__class__.__bases__",
        "[1, 2]",
        "{1: 2}",
        "lambda: 1",
        "open('x')",
        "f'{length}'",
        "(length := 3)",
        "[x for x in word]",
        "min(*[1])",
        "min(key=1)",
        "min()",
        "log2.real(3)",
        "word[0]",
        "length is None",
        "True",
        "1j",
        "b'1'",
        "~length",
        "length @ length",
        "1 +",
        "",
        "a = 3",
        "1" + " + 1" * 300,
        "(" * 300 + ")" * 300,
        "-" * 990 + "1",
        "length << 3",
    ],
)
def test_what_is_refused_before_it_is_computed(text: str) -> None:
    with pytest.raises(InputError, match="expected"):
        Expression(text)({})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("array.rows / (length - 128)", "divides by zero"),
        ("array.rows % 0", "divides by zero"),
        ("array.columns", "array.columns: unknown name"),
        ("word * 1000000", "a word, expected a number"),
        ("9 ** 9 ** 9", "exponent"),
        ("2 ** 65", "exponent 65, expected -64 to 64"),
        ("10 ** 64 * 10 ** 64 * 10 ** 64 * 10 ** 64 * 10 ** 64", "no number below"),
        ("(0 - 1) ** f", "no number below"),
        ("log2(0)", "log2"),
        ("word < 3", "not supported"),
        ("-word", "bad operand"),
    ],
)
def test_what_is_refused_with_the_values(text: str, line: str) -> None:
    with pytest.raises(InputError, match=line):
        Expression(text)(VALUES)
