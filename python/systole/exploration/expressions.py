"""Expressions over machine keys and results: arithmetic and comparisons, nothing else.

A space file may come from anyone, so nothing of Python's can be reached: no attributes, calls of
five functions only, numbers that stay small.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from systole.errors import InputError

Number = int | float
Operand = int | float | str | bool

_MAX_LENGTH = 1000  # characters
_MAX_DEPTH = 100  # of brackets and operators in each other
_MAX_POWER = 64
_LARGEST = 1e300

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "log2": math.log2,
    "ceil": math.ceil,
}


class Expression:
    """A compiled expression. `names` are those that it reads, such as "array.rows".

    Raises InputError for anything but numbers, words in quotes, names, `+ - * / // % **`,
    comparisons, `and or not`, `A if B else C`, and the functions min, max, abs, log2, ceil.
    """

    def __init__(self, text: object) -> None:
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"found {text!r}, expected an expression in quotes")
        if len(text) > _MAX_LENGTH:
            raise InputError(f"found {len(text)} characters, expected at most {_MAX_LENGTH}")
        self.text = text.strip()
        try:
            self._tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise InputError(f"found {text!r}, expected an expression") from None
        self.names: frozenset[str] = frozenset(self._check(self._tree))

    def _fail(self, node: ast.AST) -> InputError:
        part = ast.get_source_segment(self.text, node) or self.text
        return InputError(
            f"found {part!r}, expected numbers, names, operators and " + ", ".join(_FUNCTIONS)
        )

    def _check(self, node: ast.expr, depth: int = 0) -> list[str]:
        """The names below a node. Raises InputError for what is not allowed."""
        if depth > _MAX_DEPTH:
            raise InputError(f"found {self.text!r}, expected at most {_MAX_DEPTH} terms")
        if isinstance(node, ast.Constant) and type(node.value) in (int, float, str):
            return []
        if isinstance(node, ast.Name | ast.Attribute):
            return [self._name(node)]
        parts: list[ast.expr]
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            parts = [node.left, node.right]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd | ast.Not):
            parts = [node.operand]
        elif isinstance(node, ast.BoolOp):
            parts = node.values
        elif isinstance(node, ast.Compare) and all(type(op) in _COMPARE for op in node.ops):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.IfExp):
            parts = [node.test, node.body, node.orelse]
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in _FUNCTIONS
            and not node.keywords
            and node.args
        ):
            parts = node.args
        else:
            raise self._fail(node)
        return [name for part in parts for name in self._check(part, depth + 1)]

    def _name(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute):
            return f"{self._name(node.value)}.{node.attr}"
        raise self._fail(node)

    def __call__(self, values: Mapping[str, Operand]) -> Operand:
        """Its value. Raises InputError for an unknown name, a division by zero, a huge number."""
        try:
            value: Operand = self._value(self._tree, values)
        except ZeroDivisionError:
            raise InputError(f"{self.text}: divides by zero") from None
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{self.text}: {error}") from None
        return value

    def _value(self, node: ast.expr, values: Mapping[str, Operand]) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name() | ast.Attribute():
                name = self._name(node)
                if name not in values:
                    raise InputError(f"{self.text}: {name}: unknown name")
                return values[name]
            case ast.BinOp():
                left, right = self._value(node.left, values), self._value(node.right, values)
                return self._number(_BINARY[type(node.op)], node.op, left, right)
            case ast.UnaryOp():
                value = self._value(node.operand, values)
                if isinstance(node.op, ast.Not):
                    return not value
                return -value if isinstance(node.op, ast.USub) else +value
            case ast.BoolOp():
                is_and = isinstance(node.op, ast.And)
                return (all if is_and else any)(self._value(part, values) for part in node.values)
            case ast.Compare():
                terms = [self._value(part, values) for part in [node.left, *node.comparators]]
                pairs = zip(node.ops, terms, terms[1:], strict=False)
                return all(_COMPARE[type(op)](a, b) for op, a, b in pairs)
            case ast.IfExp():
                return self._value(
                    node.body if self._value(node.test, values) else node.orelse, values
                )
            case ast.Call(func=ast.Name(id=name)):
                return _FUNCTIONS[name](*[self._value(part, values) for part in node.args])
        raise self._fail(node)

    def _number(
        self, function: Callable[[Any, Any], Any], op: ast.operator, left: Any, right: Any
    ) -> Number:
        if isinstance(left, str) or isinstance(right, str):
            raise InputError(f"{self.text}: a word, expected a number")
        if isinstance(op, ast.Pow) and abs(right) > _MAX_POWER:
            raise InputError(
                f"{self.text}: exponent {right}, expected -{_MAX_POWER} to {_MAX_POWER}"
            )
        value: Number = function(left, right)
        if isinstance(value, complex) or not abs(value) < _LARGEST:
            raise InputError(f"{self.text}: no number below {_LARGEST:g}")
        return value
