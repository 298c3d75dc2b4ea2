"""Where C++ can be mutated, and the source with all of its mutants in it (mutant.h)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clang import cindex
from clang.cindex import CursorKind as Kind
from clang.cindex import TypeKind

RELATIONS = {"<": ("lt", "<="), "<=": ("le", "<"), ">": ("gt", ">="), ">=": ("ge", ">"),
             "==": ("eq", "!="), "!=": ("ne", "==")}  # fmt: skip
ARITHMETIC = {"+": ("add", "-"), "-": ("sub", "+"), "*": ("mul", "+"), "/": ("div", "*"),
              "%": ("mod", "*"), "&": ("both", "|"), "|": ("either", "&"), "^": ("differ", "&"),
              "<<": ("left", ">>"), ">>": ("right", "<<")}  # fmt: skip
LOGIC = {"&&": "||", "||": "&&"}

BODIES = {Kind.FUNCTION_DECL, Kind.CXX_METHOD, Kind.CONSTRUCTOR, Kind.DESTRUCTOR,
          Kind.FUNCTION_TEMPLATE, Kind.CONVERSION_FUNCTION, Kind.LAMBDA_EXPR}  # fmt: skip
# A statement that may be left out: a call, an assignment, an increment, a throw.
STATEMENTS = {Kind.CALL_EXPR, Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR,
              Kind.UNARY_OPERATOR, Kind.CXX_THROW_EXPR, Kind.UNEXPOSED_EXPR}  # fmt: skip
# Left out, these change the time that a program takes and nothing else.
NO_EFFECT = re.compile(r"\b(reserve|shrink_to_fit|prefetch|progress)\s*\(")
NUMBERS = {TypeKind.BOOL, TypeKind.CHAR_U, TypeKind.UCHAR, TypeKind.USHORT, TypeKind.UINT,
           TypeKind.ULONG, TypeKind.ULONGLONG, TypeKind.CHAR_S, TypeKind.SCHAR, TypeKind.SHORT,
           TypeKind.INT, TypeKind.LONG, TypeKind.LONGLONG, TypeKind.FLOAT,
           TypeKind.DOUBLE}  # fmt: skip


@dataclass
class Site:
    """A mutant: bytes [begin, end) of its file."""

    begin: int
    end: int
    kind: str
    line: int
    function: str
    was: str  # source of one line
    becomes: str
    name: str  # of the function of mutant.h
    written: str  # the operator
    parts: tuple[tuple[int, int], ...]  # operands, mutated themselves
    number: int = 0


def resource_folder() -> str:
    """Clang's own headers, of the version that the library reads."""
    run = subprocess.run(
        ["clang", "-print-resource-dir"], capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def one_line(text: bytes) -> str:
    return re.sub(r"\s+", " ", text.decode()).strip()


class Finder:
    """Collects the sites of one file."""

    def __init__(self, path: Path, arguments: list[str]) -> None:
        self.path = path
        self.text = path.read_bytes()
        index = cindex.Index.create()
        self.unit = index.parse(str(path), args=["-x", "c++", "-std=c++17", *arguments])
        worst = [d for d in self.unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
        if worst:
            raise ValueError(f"{path}: {worst[0].spelling}")
        self.sites: list[Site] = []

    def find(self) -> list[Site]:
        self.outside(self.unit.cursor)
        self.sites.sort(key=lambda site: (site.begin, -site.end))
        return self.sites

    def is_here(self, cursor: cindex.Cursor) -> bool:
        file = cursor.location.file
        return file is not None and file.name == str(self.path)

    def outside(self, cursor: cindex.Cursor) -> None:
        """Bodies of functions alone are mutated."""
        for child in cursor.get_children():
            if cursor.kind == Kind.TRANSLATION_UNIT and not self.is_here(child):
                continue
            if child.kind in BODIES:
                self.body_of(child)
            else:
                self.outside(child)

    def body_of(self, function: cindex.Cursor) -> None:
        for child in function.get_children():
            if child.kind == Kind.COMPOUND_STMT:
                self.inside(child, function.spelling or "lambda")

    def source(self, cursor: cindex.Cursor) -> bytes:
        return self.text[cursor.extent.start.offset : cursor.extent.end.offset]

    def add(
        self,
        cursor: cindex.Cursor,
        kind: str,
        function: str,
        becomes: str,
        name: str,
        written: str = "",
        parts: Sequence[tuple[int, int]] = (),
    ) -> None:
        begin, end = cursor.extent.start.offset, cursor.extent.end.offset
        if not self.is_here(cursor) or end <= begin:
            return
        line, was = cursor.extent.start.line, one_line(self.text[begin:end])
        self.sites.append(
            Site(begin, end, kind, line, function, was, becomes, name, written, tuple(parts))
        )

    def inside(self, cursor: cindex.Cursor, function: str) -> None:
        if cursor.kind == Kind.LAMBDA_EXPR:
            self.body_of(cursor)
            return
        # What the compiler computes, and names of types.
        if cursor.kind in {
            Kind.STATIC_ASSERT,
            Kind.TYPE_REF,
            Kind.TEMPLATE_REF,
            Kind.TYPE_ALIAS_DECL,
        }:
            return
        if cursor.kind == Kind.VAR_DECL and re.match(
            rb"(static\s+)?constexpr\b", self.declaration(cursor)
        ):
            return
        if (
            cursor.kind == Kind.IF_STMT and re.match(rb"if\s+constexpr\b", self.source(cursor))
        ) or cursor.kind == Kind.CASE_STMT:
            children = list(cursor.get_children())[1:]
        else:
            children = list(cursor.get_children())
        if cursor.kind == Kind.COMPOUND_STMT:
            for child in children:
                self.statement(child, function)
        elif cursor.kind == Kind.BINARY_OPERATOR:
            self.operator(cursor, children, function)
        elif cursor.kind == Kind.INTEGER_LITERAL:
            if re.fullmatch(rb"[0-9][0-9a-fA-FxX']*[uUlL]*", self.source(cursor)):
                self.add(cursor, "literal", function, becomes="one more", name="more")
        elif cursor.kind == Kind.CALL_EXPR:
            self.call(cursor, function)
        elif cursor.kind in {Kind.IF_STMT, Kind.WHILE_STMT, Kind.CONDITIONAL_OPERATOR} and children:
            self.condition(children[0], function)
        for child in children:
            self.inside(child, function)

    def declaration(self, cursor: cindex.Cursor) -> bytes:
        """Of a variable, with the words before it that are not in its extent."""
        start = self.text.rfind(b"\n", 0, cursor.extent.start.offset) + 1
        return self.text[start : cursor.extent.end.offset].lstrip()

    def statement(self, cursor: cindex.Cursor, function: str) -> None:
        if cursor.kind not in STATEMENTS or NO_EFFECT.search(one_line(self.source(cursor))):
            return
        self.add(cursor, "statement", function, becomes="nothing", name="statement")

    def operator(self, cursor: cindex.Cursor, operands: list[cindex.Cursor], function: str) -> None:
        if len(operands) != 2:
            return
        a, b = (operand.extent for operand in operands)
        written = self.text[a.end.offset : b.start.offset].decode().strip()
        parts = [(a.start.offset, a.end.offset), (b.start.offset, b.end.offset)]
        if parts[0][0] != cursor.extent.start.offset or parts[1][1] != cursor.extent.end.offset:
            return
        if written in LOGIC:
            self.add(cursor, "logic", function, LOGIC[written], "logic", written, parts)
            return
        kinds = [operand.type.get_canonical().kind for operand in operands]
        if written in RELATIONS:
            name, becomes = RELATIONS[written]
            self.add(
                cursor,
                "relation",
                function,
                becomes=becomes,
                name=name,
                written=written,
                parts=parts,
            )
        elif written in ARITHMETIC and NUMBERS.issuperset(kinds):
            if (
                any(kind in {TypeKind.FLOAT, TypeKind.DOUBLE} for kind in kinds)
                and written in "%&|^"
            ):
                return
            name, becomes = ARITHMETIC[written]
            self.add(
                cursor,
                "arithmetic",
                function,
                becomes=becomes,
                name=name,
                written=written,
                parts=parts,
            )

    def call(self, cursor: cindex.Cursor, function: str) -> None:
        found = re.match(rb"std::(min|max)(<|(?=\())", self.source(cursor))
        if not found or b"," not in self.source(cursor):
            return
        arguments = list(cursor.get_arguments())
        if len(arguments) > 2:  # with an order of its own
            return
        begin = cursor.extent.start.offset
        word = found.group(1).decode()
        becomes = {"min": "std::max", "max": "std::min"}[word]
        self.add(
            cursor,
            "extreme",
            function,
            becomes=becomes,
            name=word,
            parts=[(begin, begin + found.end())],
        )

    def condition(self, cursor: cindex.Cursor, function: str) -> None:
        if cursor.kind == Kind.BINARY_OPERATOR or cursor.kind.is_declaration():
            return
        if cursor.type.get_canonical().kind != TypeKind.BOOL:
            return
        self.add(cursor, "condition", function, becomes="its opposite", name="flip")


def find_sites(path: Path, arguments: list[str]) -> list[Site]:
    """The mutants of a file in order, without those that overlap and are not one in the other."""
    sites: list[Site] = []
    for site in Finder(path, arguments).find():
        crosses = any(o.begin < site.begin < o.end < site.end for o in sites)
        if not crosses and all(
            inside_one_part(o, site) for o in sites if o.begin <= site.begin < o.end
        ):
            sites.append(site)
    return sites


def inside_one_part(outer: Site, inner: Site) -> bool:
    """Whether the outer mutant leaves the place of the inner one where it is."""
    if outer.name in {"statement", "flip"}:
        return True
    if outer.name in {"min", "max"}:
        return inner.begin >= outer.parts[0][1]
    return any(begin <= inner.begin and inner.end <= end for begin, end in outer.parts)


def mutated(text: bytes, sites: list[Site]) -> bytes:
    """The source with all mutants in it, each by its number."""
    return render(text, 0, len(text), sites)


def render(text: bytes, begin: int, end: int, sites: list[Site]) -> bytes:
    out, at, i = b"", begin, 0
    while i < len(sites):
        site = sites[i]
        last = i + 1
        while last < len(sites) and sites[last].begin < site.end:
            last += 1
        out += text[at : site.begin] + replaced(text, site, sites[i + 1 : last])
        at, i = site.end, last
    return out + text[at:end]


def replaced(text: bytes, site: Site, within: list[Site]) -> bytes:
    def part(begin: int, end: int) -> bytes:
        return render(text, begin, end, [s for s in within if begin <= s.begin and s.end <= end])

    number = str(site.number).encode()
    of = b"::systole::mutation::"
    if site.name == "statement":
        return b"if (!" + of + b"active(" + number + b")) " + part(site.begin, site.end)
    if site.name == "more":
        return of + b"more(" + number + b", " + part(site.begin, site.end) + b")"
    if site.name == "flip":
        return of + b"flip(" + number + b", static_cast<bool>(" + part(site.begin, site.end) + b"))"
    if site.name in {"min", "max"}:
        after = site.parts[0][1]
        has_type = text[after - 1 : after] == b"<"
        start = of + site.name.encode() + b"_<" + number + (b", " if has_type else b">")
        return start + part(after, site.end)
    a, b = (part(*operand) for operand in site.parts)
    between = text[site.parts[0][1] : site.parts[1][0]]  # with its ends of lines
    if site.kind == "logic":
        # By De Morgan, so that either operand is written once.
        def flip(value: bytes) -> bytes:
            return of + b"flip(" + number + b", " + value + b")"

        def truth(value: bytes) -> bytes:
            return flip(b"static_cast<bool>(" + value + b")")

        return flip(truth(a) + between + truth(b))
    comma = between.replace(site.written.encode(), b",", 1)
    return of + site.name.encode() + b"(" + number + b", " + a + comma + b + b")"
