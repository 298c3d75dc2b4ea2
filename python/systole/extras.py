"""Libraries that only some calls need."""

from __future__ import annotations

import importlib
from types import ModuleType

from systole.errors import InputError


def require(module: str, extra: str) -> ModuleType:
    """The module. Raises InputError that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise InputError(
            f"{name}: not installed, expected: pip install '.[{extra}]' in Systole's checkout"
        ) from None
