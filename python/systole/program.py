"""The program `systole`: where it is, and one process of it per call."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from systole.errors import CheckError, InputError, KilledError, ProgramError

Value = str | int | float | bool | Path
"""A value of an option or of a machine key."""
Option = Value | Sequence[Value] | None

_PACKAGE = Path(__file__).resolve().parent
_CARRIED = _PACKAGE / "bin" / "systole"
_BUILT = Path("build") / "release" / "systole"
_PREFIX = "systole: "
# Of a crash, which the same input brings about again; any other signal came from outside.
_CRASHES = {signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGBUS, signal.SIGILL}
_EXIT_CHECK, _EXIT_INPUT = 1, 2


@dataclass(frozen=True)
class Outcome:
    """How a process ended: exit code (-N: by signal N), standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """What it complained about, without the program's name; several lines of several errors."""
        lines = [line.removeprefix(_PREFIX) for line in self.err.splitlines() if line.strip()]
        if lines:
            return "\n".join(lines)
        if self.code < 0:
            return f"ended by {signal.Signals(-self.code).name}"
        return f"exit code {self.code}, and nothing on standard error"

    @property
    def was_killed(self) -> bool:
        return self.code < 0 and signal.Signals(-self.code) not in _CRASHES

    def document(self) -> Any:
        """The JSON on standard output. Raises the error that the exit code stands for."""
        return json.loads(self.text())

    def text(self) -> str:
        """Standard output. Raises the error that the exit code stands for."""
        if self.code == 0:
            return self.out
        if self.was_killed:
            raise KilledError(self.line)
        if self.code == _EXIT_INPUT:
            raise InputError(self.line)
        if self.code == _EXIT_CHECK:
            document = json.loads(self.out) if self.out else None
            raise CheckError(self.line if self.err else _mismatch(document), document)
        raise ProgramError(self.line)


def _mismatch(document: Any) -> str:
    first = document.get("first_mismatch") if isinstance(document, dict) else None
    return f"a check does not hold: {first or 'accuracy is below the least that was asked for'}"


def find_program(*, on_path: bool = True) -> Path:
    """SYSTOLE_PROGRAM, the one in this package, build/release of a checkout around it, or PATH.

    Raises InputError if there is none.
    """
    named = os.environ.get("SYSTOLE_PROGRAM")
    if named:
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise InputError(f"SYSTOLE_PROGRAM: found {named!r}, expected an executable file")
        return Path(named).resolve()
    candidates = [_CARRIED, *(parent / _BUILT for parent in _PACKAGE.parents[1:2])]
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return candidate
    found = shutil.which("systole") if on_path else None
    if found:
        return Path(found).resolve()
    raise InputError(
        "no program systole found, expected one that SYSTOLE_PROGRAM names, in the package, "
        f"in {_BUILT} of the checkout, or on PATH"
    )


class Program:
    """One executable. Without a path: the one that `find_program()` finds."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path).resolve() if path is not None else find_program()

    def command(self, arguments: Sequence[str]) -> list[str]:
        return [str(self.path), *arguments]

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def data(self) -> Path:
        """Where it finds its models, unless it was built elsewhere."""
        installed = self.path.parent.parent / "share" / "systole" / "traces"
        built = self.path.parent.parent.parent / "traces"
        beside = installed if installed.is_dir() else built
        return Path(self.environment().get("SYSTOLE_DATA", beside))

    def call(self, arguments: Sequence[str]) -> Outcome:
        """Runs it to its end."""
        try:
            done = subprocess.run(
                self.command(arguments),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=self.environment(),
                check=False,
            )
        except OSError as error:
            raise InputError(
                f"{self.path}: {error.strerror}, expected the program systole"
            ) from None
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"))

    def json(self, arguments: Sequence[str]) -> Any:
        """The document that `systole ARGUMENTS... --json` prints."""
        return self.call([*arguments, "--json"]).document()

    @functools.cached_property
    def version(self) -> str:
        """Without the commit: "0.1.0"."""
        return self.call(["--version"]).text().split()[1]

    @functools.cached_property
    def digest(self) -> str:
        """Of the executable: two builds of one version may differ in cycles."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def options(self, command: str) -> Mapping[str, str]:
        """What `systole COMMAND --help` lists: the type of each option's value, empty of a flag."""
        return _options(self, command)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)


_OPTION = re.compile(r"^ {2}(?:-\w,)?--([a-z0-9-]+)(?: (?!Needs:| )(\S+))?", re.MULTILINE)


@functools.lru_cache(maxsize=64)
def _options(program: Program, command: str) -> Mapping[str, str]:
    text = program.call([command, "--help"]).text()
    return {name: type_name for name, type_name in _OPTION.findall(text) if name != "help"}


def text_of(value: Value) -> str:
    """As the program reads it."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return repr(value) if isinstance(value, float) else str(value)


def _several(given: Value | Sequence[Value]) -> list[Value]:
    if isinstance(given, str | int | float | Path):
        return [given]
    return list(given)


def option_arguments(program: Program, command: str, options: Mapping[str, Option]) -> list[str]:
    """Keyword arguments as a command line: `min_accuracy=0.9` is `--min-accuracy=0.9`.

    True is a flag, or `on` where the option takes on|off; a sequence repeats its option, None and a
    False flag leave it out. Raises InputError for an option that the command does not have.
    """
    known = program.options(command)
    arguments: list[str] = []
    for keyword, given in options.items():
        name = keyword.replace("_", "-")
        if name not in known:
            raise InputError(
                f"{command}: found option {keyword!r}, expected one of "
                + ", ".join(sorted(option.replace("-", "_") for option in known))
            )
        if given is None:
            continue
        for value in _several(given):
            if isinstance(value, bool) and known[name] == "on|off":
                arguments.append(f"--{name}={'on' if value else 'off'}")
            elif known[name]:
                arguments.append(f"--{name}={text_of(value)}")
            elif value is True:
                arguments.append(f"--{name}")
            elif value is not False:
                raise InputError(f"{command}: {keyword}: found {value!r}, expected True or False")
    return arguments


def main() -> NoReturn:
    """The command `systole` of an installed package: becomes the program that it carries.

    Without one: the one that SYSTOLE_PROGRAM names, or of the checkout; never one on PATH, which
    may be this command itself.
    """
    try:
        program = Program(_CARRIED if os.access(_CARRIED, os.X_OK) else find_program(on_path=False))
    except InputError as error:
        print(f"systole: {error}", file=sys.stderr)
        raise SystemExit(_EXIT_INPUT) from None
    environment = program.environment() | {"SYSTOLE_PYTHON": sys.executable}
    os.execve(program.path, program.command(sys.argv[1:]), environment)
