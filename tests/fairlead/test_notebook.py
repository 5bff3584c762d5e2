"""The notebook of the documentation: each cell runs, and prints what it shows."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
from pathlib import Path
from typing import Any

from tests.wording import mentions

NOTEBOOK = Path(__file__).parents[2] / "docs" / "train.ipynb"


def run_cell(number: int, source: str, found: dict[str, Any]) -> tuple[str, object]:
    """What the cell prints, and its last value, as IPython has them."""
    name = f"<cell {number}>"
    # As IPython does, so that functions have a source.
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    tree = ast.parse(source, name)
    end = tree.body[-1] if tree.body else None
    last = end.value if isinstance(end, ast.Expr) else None
    if last is not None:
        tree.body.pop()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), found)  # noqa: S102  the documentation's own code
        value = eval(compile(ast.Expression(last), name, "eval"), found) if last else None  # noqa: S307
    return printed.getvalue(), value


def test_every_cell_runs_and_prints_what_it_shows() -> None:
    """The preview is HTML, with the pods and the policy behind their placement."""
    notebook = json.loads(NOTEBOOK.read_text())
    cells = [each for each in notebook["cells"] if each["cell_type"] == "code"]
    found: dict[str, Any] = {"__name__": "__main__"}
    values = []
    for number, cell in enumerate(cells):
        printed, value = run_cell(number, "".join(cell["source"]), found)
        assert printed == "".join(line for each in cell["outputs"] for line in each["text"])
        values.append(value)
    (shown,) = [each for each in values if hasattr(each, "_repr_html_")]
    mentions(
        shown._repr_html_(),
        "worker × 2",
        "nodeSelector[topology.kubernetes.io/zone]: near-the-data",
        "placed",
    )
