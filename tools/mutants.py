"""Mutation sample: change the code in random places, and see whether the tests notice.

    python -m tools.mutants sample webhook/placement webhook/run --count 100 --seed 1 > mutants.json
    python -m tools.mutants cover --of webhook --out coverage.json tests/placement tests/run ...
    python -m tools.mutants run mutants.json --coverage coverage.json --out results.json

`sample` draws mutants of each folder. `cover` runs tests and keeps which of them reach which line.
`run` applies one mutant after the other in a copy of the checkout and runs the tests that cover its
line, the fastest first, until one fails. A mutant is named by its function and not by its line, so
that the same sample serves two versions of the code. Results are appended as they come; a run that
was stopped goes on where it ended.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Json = dict[str, Any]
Coverage = dict[str, dict[str, list[str]]]
# Seconds for the tests of one mutant; what takes longer counts as killed, for it hangs.
PATIENCE: Final = 600
TEXT: Final = "a text is changed"
_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


class Mutant(NamedTuple):
    """One change: the number of the place among those of a function, and what is changed there."""

    file: str
    function: str
    number: int
    change: str


class Place(NamedTuple):
    """A node that can be changed, and the changed node."""

    function: str
    node: ast.AST
    changed: ast.AST
    change: str


def places(tree: ast.Module) -> Iterator[Place]:
    """Yield every place of a module that can be changed, in the order of the source."""
    yield from _places(tree, "", in_class=False)


def _places(node: ast.AST, function: str, *, in_class: bool) -> Iterator[Place]:
    for child in _code(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{function}.{child.name}".lstrip(".")
            yield from _places(child, name, in_class=isinstance(child, ast.ClassDef))
            continue
        for changed, change in _changes(child):
            # Texts in the body of a class are descriptions of fields, for the reference.
            if not (in_class and change == TEXT):
                yield Place(function, child, changed, change)
        yield from _places(child, function, in_class=in_class)


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of a node that do something when the program runs."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_comment", "format_spec"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _is_idle(child):
                continue
            yield child


def _is_idle(node: ast.AST) -> bool:
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    return docstring or typing or isinstance(node, ast.Import | ast.ImportFrom)


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    match node:
        case ast.Compare(ops=[op, *_]) if type(op) in _COMPARISONS:
            other = copy.deepcopy(node)
            other.ops[0] = _COMPARISONS[type(op)]()
            yield other, f"{type(op).__name__} becomes {type(other.ops[0]).__name__}"
        case ast.BoolOp(op=op):
            other_op = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield ast.BoolOp(other_op, node.values), "and and or change places"
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand, "not is dropped"
        case ast.BinOp(op=op) if type(op) in _OPERATORS:
            swapped = _OPERATORS[type(op)]()
            yield ast.BinOp(node.left, swapped, node.right), f"{type(op).__name__} is swapped"
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value), "a boolean is negated"
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1), "a number grows by one"
        case ast.Constant(value=str() as value) if value:
            yield ast.Constant(f"XX{value}"), TEXT
        case ast.If() | ast.IfExp() | ast.While():
            negated = copy.copy(node)
            negated.test = ast.UnaryOp(ast.Not(), node.test)
            yield negated, "a condition is negated"
        case ast.Return(value=value) if value is not None:
            yield ast.Return(ast.Constant(None)), "None is returned"
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Continue() | ast.Break():
            yield ast.Pass(), "a statement is dropped"
        case _:
            return


def sample(root: Path, folders: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Draw `count` mutants of each folder."""
    drawn: list[Mutant] = []
    for folder in folders:
        mutants: list[Mutant] = []
        for path in sorted((root / folder).rglob("*.py")):
            file = str(path.relative_to(root))
            numbers: dict[str, int] = {}
            for place in places(ast.parse(path.read_text())):
                number = numbers[place.function] = numbers.get(place.function, -1) + 1
                mutants.append(Mutant(file, place.function, number, place.change))
        chance = random.Random(f"{seed} {folder}")  # noqa: S311 (a seed makes it repeatable)
        chance.shuffle(mutants)
        texts = [mutant for mutant in mutants if mutant.change == TEXT]
        others = [mutant for mutant in mutants if mutant.change != TEXT]
        # Most constants are texts: more than a quarter of them would leave the logic alone.
        drawn += [*texts[: count // 4], *others[: count - count // 4]]
    return drawn


def mutated(source: str, mutant: Mutant) -> tuple[str, int, str] | None:
    """Return the changed source, the line, and its text; None if the place is not there."""
    tree = ast.parse(source)
    function_places = [place for place in places(tree) if place.function == mutant.function]
    if (
        len(function_places) <= mutant.number
        or function_places[mutant.number].change != mutant.change
    ):
        return None
    place = function_places[mutant.number]
    line: int = getattr(place.node, "lineno", 0)

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return place.changed if node is place.node else self.generic_visit(node)

    changed = ast.fix_missing_locations(Replace().visit(tree))
    return ast.unparse(changed), line, source.splitlines()[line - 1].strip()


def cover(tests: Sequence[str], folders: Sequence[str]) -> Coverage:
    """Run tests; file -> line -> the tests that reach it, the fastest first.

    A line that only runs on import is covered by every test that reaches the file.
    """
    import coverage
    import pytest

    measured = coverage.Coverage(data_file=None, source=list(folders), branch=False)
    seconds: dict[str, float] = {}

    class Contexts:
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
            measured.switch_context(item.nodeid)
            begin = time.monotonic()
            done = yield
            seconds[item.nodeid] = time.monotonic() - begin
            measured.switch_context("")
            return done

    measured.start()
    try:
        pytest.main(["-q", "-p", "no:randomly", "-p", "no:xdist", *tests], [Contexts()])
    finally:
        measured.stop()
    data, root = measured.get_data(), Path.cwd()
    lines_by_file: Coverage = {}
    for file in data.measured_files():
        lines = data.contexts_by_lineno(file)
        tests_of = {
            line: sorted(filter(None, names), key=seconds.__getitem__)
            for line, names in lines.items()
        }
        every = sorted(
            {name for names in tests_of.values() for name in names},
            key=seconds.__getitem__,
        )
        lines_by_file[str(Path(file).relative_to(root))] = {
            str(line): names or every for line, names in tests_of.items()
        }
    return lines_by_file


def judge(root: Path, mutant: Mutant, coverage: Coverage) -> Json:
    """Apply one mutant, run the tests that cover its line, and put the file back."""
    path = root / mutant.file
    source = path.read_text()
    changed = mutated(source, mutant)
    result: Json = {"mutant": list(mutant)}
    if changed is None:
        return {**result, "result": "not there"}
    text, line, words = changed
    result |= {"line": line, "source": words}
    tests = coverage.get(mutant.file, {}).get(str(line), [])
    if not tests:
        return {**result, "result": "not covered"}
    begin = time.monotonic()
    path.write_text(text)
    try:
        code = _pytest(root, tests)
    finally:
        path.write_text(source)
    # 4: a plugin or a conftest.py cannot be imported.
    verdict = {0: "survived", 124: "killed: it hangs"}
    result["result"] = verdict.get(code, "killed")
    return {**result, "tests": len(tests), "seconds": round(time.monotonic() - begin, 1)}


def _pytest(root: Path, arguments: Sequence[str]) -> int:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:randomly", "-p", "no:xdist"]
    listed = root / ".mutant-tests"
    listed.write_text("\n".join(arguments))
    with subprocess.Popen(  # noqa: S603
        [*command, f"@{listed}"],
        cwd=root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(root)},
    ) as process:
        try:
            return process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return 124


def run(root: Path, mutants: Sequence[Mutant], coverage: Coverage, out: Path) -> None:
    """Judge those mutants that `out` has no result of, and print a line for each."""
    records = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {tuple(record["mutant"]) for record in records}
    for at, mutant in enumerate(mutants, 1):
        if tuple(mutant) in done:
            continue
        result = judge(root, mutant, coverage)
        with out.open("a") as file:
            file.write(json.dumps(result) + "\n")
        print(
            f"{at}/{len(mutants)} {result['result']}: {mutant.file} {mutant.function} "
            f"({mutant.change})",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("sample", help="draw mutants, as JSON on stdout")
    command.add_argument("folders", nargs="+")
    command.add_argument("--count", type=int, default=100)
    command.add_argument("--seed", type=int, default=1)
    two = commands.add_parser("cover", help="run tests and keep which of them reach which line")
    two.add_argument("tests", nargs="+")
    two.add_argument("--of", action="append", required=True, metavar="FOLDER")
    two.add_argument("--out", type=Path, required=True)
    three = commands.add_parser("run", help="judge each mutant, by changing this checkout")
    three.add_argument("mutants", type=Path)
    three.add_argument("--coverage", type=Path, required=True)
    three.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    root = Path.cwd()
    if given.command == "sample":
        json.dump(sample(root, given.folders, given.count, given.seed), sys.stdout, indent=0)
    elif given.command == "cover":
        given.out.write_text(json.dumps(cover(given.tests, given.of)))
    else:
        mutants = [Mutant(*row) for row in json.loads(given.mutants.read_text())]
        run(root, mutants, json.loads(given.coverage.read_text()), given.out)


if __name__ == "__main__":
    main()
