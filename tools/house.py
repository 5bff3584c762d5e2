"""Measure the code: its modules and functions, and who imports what.

    python -m tools.house webhook             # one line for each figure
    python -m tools.house webhook --against OTHER_CHECKOUT
    python -m tools.house --limits            # rooms above tools/limits.toml, and refused names

`imported by one` are modules that exactly one other module of the package imports. A line is a line
of the file, blank and comment lines included. A room is a folder of a package; the modules beside
the folders are the room that has the package's name.
"""

from __future__ import annotations

import argparse
import ast
import statistics
import sys
import tomllib
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Modules with fewer lines are small.
SMALL: Final = 80
_P90: Final = 0.9
LIMITS: Final = Path("tools", "limits.toml")
# Names that leave open what a value is.
REFUSED_NAMES: Final = frozenset({"each", "found", "known", "of", "one", "own", "there"})
# The end of a line that declares a field whose name users write.
_IN_API: Final = "  # as in the API"


class Module(NamedTuple):
    """One module: its dotted name, its lines, those of each function, and what it imports."""

    name: str
    lines: int
    functions: Sequence[int]
    import_lines: int
    imports: frozenset[str]


def main() -> None:
    """Print the figures of a package, beside those of another checkout if one is given."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.house",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("package", type=Path, nargs="?", help="the package's folder")
    what.add_argument("--limits", action="store_true", help=f"check the limits of {LIMITS}")
    parser.add_argument("--against", type=Path, help="another checkout, which is shown first")
    arguments = parser.parse_args()
    if arguments.limits:
        sys.exit("\n".join(broken_limits(Path())) or 0)
    package: Path = arguments.package
    roots = [*([arguments.against] if arguments.against else ()), Path()]
    for root in roots:
        if not (root / package).is_dir():
            sys.exit(f"{root / package} is not a folder")
    columns = [figures(root, package) for root in roots]
    for name in columns[0]:
        sys.stdout.write(f"{name:36}" + "".join(f"{column[name]:>10}" for column in columns) + "\n")


def figures(root: Path, package: Path) -> dict[str, str]:
    """Return each figure by its name."""
    modules = [_module(root, path) for path in sorted((root / package).rglob("*.py"))]
    names = {module.name for module in modules}
    importers: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for imported in _targets(module.imports, names) - {module.name}:
            importers[imported].add(module.name)
    sizes = [module.lines for module in modules]
    functions = [lines for module in modules for lines in module.functions]
    single = [module for module in modules if len(importers[module.name]) == 1]
    total = sum(sizes)
    import_lines = sum(module.import_lines for module in modules)
    return {
        "modules": f"{len(modules):,}",
        "lines": f"{total:,}",
        "lines of a module, median": f"{statistics.median(sizes):.0f}",
        "lines of a module, 90th percentile": f"{_p90(sizes)}",
        "functions": f"{len(functions):,}",
        "lines of a function, median": f"{statistics.median(functions):.0f}",
        "lines of a function, 90th percentile": f"{_p90(functions)}",
        "modules imported by one": f"{len(single):,}",
        f"of these, under {SMALL} lines": f"{sum(module.lines < SMALL for module in single):,}",
        "share of lines that import": f"{import_lines / total:.1%}",
    }


def broken_limits(root: Path) -> Iterator[str]:
    """Yield each room with more lines than its limit, and each refused name, a line for each."""
    table = tomllib.loads((root / LIMITS).read_text())
    lines: dict[str, int] = table["lines"]
    counts: Counter[str] = Counter()
    for folder, suffixes in table["counted"].items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes:
                parts = path.relative_to(root).parts
                room = "/".join(parts[:2] if len(parts) > 2 else parts[:1])
                kind = "" if path.suffix == ".py" else f" {path.suffix}"
                counts[room + kind] += len(path.read_text().splitlines())
    for room, number in sorted(counts.items()):
        if room not in lines:
            yield f"{LIMITS}: {room} has no limit; add its {number} lines, with the reason"
        elif number > lines[room]:
            yield (
                f"{LIMITS}: {room} has {number} lines, {number - lines[room]} above its limit; "
                "delete as many, or raise the limit in a commit of its own, with the reason"
            )
    yield from (f"{LIMITS}: {room} is no room; remove its limit" for room in lines.keys() - counts)
    for folder in table["names"]["checked"]:
        for path in sorted((root / folder).rglob("*.py")):
            for line, name in _refused_names(path.read_text()):
                yield (
                    f"{path.relative_to(root)}:{line}: the name '{name}' leaves open what the "
                    "value is; write what it is, such as pod, faults or nodes_by_class"
                )


def _refused_names(text: str) -> Iterator[tuple[int, str]]:
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name, line = node.id, node.lineno
        elif isinstance(node, ast.arg):
            name, line = node.arg, node.lineno
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            name, line = node.name, node.lineno
        else:
            continue
        if name in REFUSED_NAMES and not lines[line - 1].endswith(_IN_API):
            yield line, name


def _p90(values: Sequence[int]) -> int:
    return sorted(values)[int(_P90 * (len(values) - 1))]


def _module(root: Path, path: Path) -> Module:
    text = path.read_text()
    tree = ast.parse(text)
    parts = path.relative_to(root).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return Module(
        name,
        len(text.splitlines()),
        [_height(node) for node in ast.walk(tree) if isinstance(node, _FUNCTION)],
        sum(_height(node) for node in imports),
        frozenset(name for node in imports for name in _imported(node)),
    )


_FUNCTION: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


def _height(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Dotted names; of `from a import b` both a.b, which may be a module, and a."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif node.module:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _targets(imports: frozenset[str], modules: set[str]) -> set[str]:
    """Return the modules of the package that are imported."""
    targets = set()
    for name in imports:
        holder = name.rpartition(".")[0]
        if name in modules:
            targets.add(name)
        elif holder in modules:
            targets.add(holder)
    return targets


if __name__ == "__main__":
    main()
